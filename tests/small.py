"""Small random models and texts, in float64, for tests against brute force."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from lib.datasets.batches import Batch, collate
from lib.datasets.corpus import Instance, Split, Vocabulary
from lib.importance.deletions import logits_without_each_token
from lib.models import AttentionClassifier
from lib.quantity import Quantity

WORDS = tuple(f"w{number}" for number in range(30))


def split(lengths=(1, 2, 3, 7, 12), seed=0, name="test") -> Split:
    """Random texts of the given lengths, labels 0 and 1 in turn."""
    random = np.random.default_rng(seed)
    texts = (tuple(random.choice(WORDS, length)) for length in lengths)
    instances = tuple(Instance(f"{name}-{i}", "", text, i % 2) for i, text in enumerate(texts))
    return Split(name, instances, Vocabulary.of([WORDS]))


def dataset(home: Path, name: str, about: dict, **splits: list[dict] | bytes) -> Path:
    """The folder of a dataset with the records of its splits, or the content of their files."""
    folder = home / name
    folder.mkdir(exist_ok=True)
    (folder / "dataset.json").write_text(json.dumps(about))
    for split, records in splits.items():
        content = records if isinstance(records, bytes) else lines(records)
        (folder / f"{split}.jsonl.gz").write_bytes(gzip.compress(content))
    return folder


def lines(records: list[dict]) -> bytes:
    """Records as JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def quantities(**functions: Callable) -> list[Quantity]:
    """Functions (model, batch, output) as quantities without a unit."""
    return [Quantity(name, function, "1") for name, function in functions.items()]


def batch(lengths=(1, 2, 3, 7, 12), seed=0) -> Batch:
    return collate(split(lengths, seed), np.arange(len(lengths)))


def model(encoder="bilstm", attention="additive", outputs=1, seed=0, **options) -> AttentionClassifier:
    """An untrained model with weights large enough that attention is far from uniform."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        size = {} if encoder == "flan-noenc" else {"hidden_size": 8}
        vectors = torch.randn(len(WORDS) + 4, 10)
        made = AttentionClassifier(vectors, encoder, attention, outputs=outputs, **size, **options)
        for parameter in made.attention.parameters():
            torch.nn.init.normal_(parameter, std=2)
    return made.double().eval()


class Foreign(torch.nn.Module):
    """The interface and nothing else: no fast form may recognise it."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        for name in ("from_embeddings", "read_out", "token_logits"):
            setattr(self, name, getattr(inner, name))

    def forward(self, given, attention=None):
        return self.inner(given, attention)


class NotAffine(Foreign):
    """The same without token_logits: the read-out counts as not affine."""

    def __init__(self, inner):
        super().__init__(inner)
        self.token_logits, self.read_out = lambda output: None, self.read

    def read(self, output, attention):
        draws = attention if attention.dim() == 3 else attention[:, None]
        return self.inner.decoder(draws @ output.hidden).view(*attention.shape[:-1], -1)


def shortened_by_hand(given: Batch, row: int, position: int) -> Batch:
    """One text without the word at `position`, as a batch of its own."""
    length = int(given.lengths[row])
    tokens = torch.cat([given.tokens[row, :position], given.tokens[row, position + 1 : length]])[None]
    return Batch.of(tokens, torch.tensor([length - 1]), given.label[row : row + 1], given.instance[row : row + 1])


def deletions_are_shortened_texts(tested: AttentionClassifier, given: Batch) -> None:
    """Asserts that leaving a token out gives the logits of the text without it, and of no text at all the bias."""
    logits = logits_without_each_token(tested, given)
    assert torch.equal(logits.isnan().any(dim=-1), ~given.mask)
    for row, position in given.mask.nonzero().tolist():
        alone, shorter = given.lengths[row] == 3, shortened_by_hand(given, row, position)
        expected = tested.decoder.bias if alone else tested(shorter).logits[0]
        assert torch.allclose(logits[row, position], expected, atol=1e-9, rtol=0)
