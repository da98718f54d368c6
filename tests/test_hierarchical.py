"""The hierarchical network against one text, one sentence at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small import WORDS

from lib.datasets.batches import collate
from lib.datasets.corpus import Instance, Split, Vocabulary
from lib.models import HierarchicalClassifier
from lib.projections import softmax

ENCODERS = {"han-rnn": {"hidden_size": 8}, "han-conv": {"hidden_size": 8}, "han-noenc": {}}
CUTS = ((3, 1, 4), (5,), (1, 1), (2, 7, 1, 3), (6, 2))


def documents(cuts=CUTS, seed=0) -> Split:
    random = np.random.default_rng(seed)
    texts = [(tuple(random.choice(WORDS, sum(cut))), i % 2) for i, cut in enumerate(cuts)]
    instances = tuple(Instance("", "", *text, sentences=cut) for text, cut in zip(texts, cuts, strict=True))
    return Split("test", instances, Vocabulary.of([WORDS]))


def network(encoder: str, outputs: int = 3) -> HierarchicalClassifier:
    torch.manual_seed(0)
    options = {"outputs": outputs, "attention_share": 0.75} | ENCODERS[encoder]
    made = HierarchicalClassifier(torch.randn(len(WORDS) + 4, 10), encoder, **options)
    for part in (made.attention, made.word_attention):
        for parameter in part.parameters():
            torch.nn.init.normal_(parameter, std=2)
    return made.double().eval()


def by_hand(tested: HierarchicalClassifier, split: Split, text: int):
    """(logits, sentence attention) of one text, sentence by sentence."""
    ids = torch.from_numpy(split.vocabulary.encode(split.instances[text].tokens))[1:-1]
    vectors = []
    for words in ids.split(split.instances[text].sentences):
        states = tested.word_encoder(tested.embedding(words)[None], torch.tensor([len(words)]))
        weights = softmax(tested.word_attention(states), torch.ones(1, len(words), dtype=torch.bool))
        vectors.append((weights[0][:, None] * states[0]).sum(dim=0))
    hidden = tested.encoder(torch.stack(vectors)[None], torch.tensor([len(vectors)]))
    attention = softmax(tested.attention(hidden), torch.ones(1, len(vectors), dtype=torch.bool))
    return tested.decoder((attention[0][:, None] * hidden[0]).sum(dim=0)), attention[0]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("cuts", [CUTS, ((5,), (1,))], ids=("several", "one"))
def test_a_batch_is_each_text_sentence_by_sentence(encoder, cuts):
    tested, split = network(encoder), documents(cuts)
    output = tested(collate(split, np.arange(len(split))))
    assert output.mask.sum(dim=1).tolist() == [len(cut) for cut in cuts]
    for text in range(len(split)):
        logits, attention = by_hand(tested, split, text)
        assert torch.allclose(output.logits[text], logits, atol=1e-12)
        assert torch.allclose(output.attention[text][output.mask[text]], attention, atol=1e-12)


def test_sentences_go_with_their_texts_and_texts_without_are_refused():
    split = documents()
    batch = collate(split, np.arange(len(split)))
    expected = [[-1, *np.repeat(np.arange(len(cut)), cut), -1] for cut in CUTS]
    assert [row[:length].tolist() for row, length in zip(batch.sentence, batch.lengths, strict=True)] == expected
    few = batch.rows(torch.tensor([2, 0]))
    assert torch.equal(few.sentence, batch.sentence[[2, 0], : few.tokens.shape[1]])
    assert torch.allclose(network("han-noenc")(few).logits, network("han-noenc")(batch).logits[[2, 0]], atol=1e-12)
    with pytest.raises(ValueError, match="cut into sentences"):
        network("han-noenc")(replace(batch, sentence=None))
