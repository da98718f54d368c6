"""Batches hold every text once, exactly as it is, with almost no padding."""

import numpy as np
import pytest
import torch

from lib import numerics as chunks
from lib.datasets.batches import batches, collate, micro_batches
from lib.datasets.corpus import END, PAD, START, UNKNOWN, Instance, Split, Vocabulary
from lib.numerics import by_length


def split_of(lengths, seed=0):
    """Random texts of these lengths; about one word in ten is unknown."""
    random = np.random.default_rng(seed)
    vocabulary = Vocabulary.of([[f"word{i}" for i in range(90)]])
    texts = [tuple(f"word{i}" for i in random.integers(0, 100, length)) for length in lengths]
    return Split("train", tuple(Instance(f"{i}", " ".join(t), t, i % 3) for i, t in enumerate(texts)), vocabulary)


@pytest.fixture(scope="module")
def split():
    """Lengths as in SST: mean about 19, from 6 to 50."""
    return split_of(np.clip(6 + np.random.default_rng(1).gamma(2.2, 6.0, 1500).astype(int), 6, 50))


@pytest.mark.parametrize("seed", [None, 3, (3, 1)])
def test_every_text_occurs_once_and_unchanged(split, seed):
    seen = []
    for batch in batches(split, 32, seed=seed):
        assert len(batch) <= 32
        for row, position in enumerate(batch.instance.tolist()):
            instance, length = split.instances[position], int(batch.lengths[row])
            expected = [START, *(split.vocabulary.ids.get(t, UNKNOWN) for t in instance.tokens), END]
            assert batch.tokens[row].tolist() == expected + [PAD] * (batch.tokens.shape[1] - length)
            assert batch.mask[row].nonzero().squeeze(1).tolist() == list(range(1, length - 1))
            assert batch.label[row] == instance.label
            seen.append(position)
        assert batch.tokens.shape[1] == batch.lengths.max()
    assert sorted(seen) == list(range(len(split)))


def test_the_seed_decides_the_order_and_without_one_texts_come_from_short_to_long(split):
    def order(seed):
        return torch.cat([batch.instance for batch in batches(split, 32, seed=seed)])

    assert torch.equal(order(5), order(5)) and not torch.equal(order(5), order(6))
    assert not torch.equal(order((5, 0)), order((5, 1)))
    assert (torch.from_numpy(split.lengths)[order(None)].diff() >= 0).all()


def test_pooled_batches_are_hardly_padded(split):
    sizes = [(batch.tokens.numel(), int(batch.lengths.sum())) for batch in batches(split, 32, seed=0)]
    padded, real = map(sum, zip(*sizes, strict=True))
    assert padded / real < 1.1
    assert max(sizes[:5])[0] > 2 * min(sizes[:5])[0], "batches of all lengths follow each other"


def test_rows_keep_the_named_texts_and_lose_their_padding(split):
    batch = collate(split, np.argsort(split.lengths)[[0, 500, -1]])
    for keep in (torch.tensor([True, True, False]), torch.tensor([1, 0])):
        part, expected = batch.rows(keep), collate(split, batch.instance[keep].numpy())
        for name in ("tokens", "lengths", "mask", "label", "instance"):
            assert torch.equal(getattr(part, name), getattr(expected, name))
    assert len(batch.rows(torch.zeros(3, dtype=torch.bool))) == 0


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("cells", [1, 3000, 60_000])
def test_pieces_hold_every_text_once_within_memory_and_hardly_padded(cells, power):
    random = np.random.default_rng(cells + power)
    lengths = torch.from_numpy(random.choice([0, 1, 5, 18, 19, 40, 90, 700, 5000], 200) + random.integers(0, 2, 200))
    found = list(by_length(lengths, cells, power))
    order = torch.cat(found)
    assert sorted(order.tolist()) == lengths.nonzero()[:, 0].tolist() and (lengths[order].diff() >= 0).all()
    for rows in found:
        shortest, longest = int(lengths[rows].min()), int(lengths[rows].max())
        held = len(rows) * longest**power
        assert held <= cells or len(rows) == 1
        assert held <= chunks.SMALL or longest <= chunks.SPREAD * shortest


def test_a_batch_that_needs_no_cut_is_not_cut(split):
    assert [len(batch) for batch in micro_batches([collate(split, np.argsort(split.lengths)[:4])], 200)] == [4]
    one_long = [collate(split_of([20] * 9 + [3000]), np.arange(10))]
    for words in (2**20, 2**12):
        assert [len(batch) for batch in micro_batches(one_long, words)] == [9, 1]


def test_one_token_one_text_no_text_and_no_size():
    (batch,) = batches(split_of([1]), 32, seed=0)
    assert batch.lengths.tolist() == [3] and batch.mask.tolist() == [[False, True, False]]
    assert list(batches(split_of([]), 32)) == list(batches(split_of([]), 32, seed=0)) == []
    with pytest.raises(ValueError, match="batch size is 0; allowed: 1 or more"):
        batches(split_of([1]), 0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["exp", "log", "tanh"])
@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
def test_elementwise_functions_are_torchs_of_any_shape_and_in_place_and_say_nothing(name, kind):
    torch.manual_seed(0)
    values = (4 * torch.randn(3, 40, 7, dtype=torch.float64)).abs().to(kind).transpose(0, 2)[:, ::3]
    values[0, :7, 0] = torch.tensor([0.0, -0.0, -1.0, torch.inf, -torch.inf, torch.nan, 1000.0])
    expected, function = getattr(torch, name)(values), getattr(chunks, name)
    for found in (function(values), function(values, out=values)):
        torch.testing.assert_close(found, expected, rtol=4 * torch.finfo(kind).eps, atol=0.0, equal_nan=True)
    assert found is values
