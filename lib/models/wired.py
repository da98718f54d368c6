"""Models whose weights are set by hand, so that what they use is known: one rule for each kind of encoder.

Words of their texts: NEUTRAL ones, and the cues "good" and "bad". In order:

average   the share of the cues: sigma(8 times the mean polarity)
conv      whether "good" stands right before "bad"
bilstm    the first cue, whatever follows
"""

import numpy as np
import torch
from torch import nn

from lib.datasets.corpus import SPECIALS, Instance, Split, Vocabulary
from lib.models.classifier import AttentionClassifier

NEUTRAL = tuple("the a film of and with story it plot was".split())
CUES = ("good", "bad")
SIZES = {"average": 2, "conv": 4, "bilstm": 4}
SHARP = 40.0  # of gates and attention: nothing in between


@torch.no_grad()
def wired(kind: str) -> AttentionClassifier:
    """The model of a rule, in doubles; KeyError for another kind."""
    words = vocabulary()
    table = torch.zeros(len(words), 2)
    for place, cue in enumerate(CUES):
        table[words.ids[cue], place] = 1
    model = AttentionClassifier(table, kind, "dot", hidden_size=SIZES[kind]).double().eval()
    for parameter in (*model.encoder.parameters(), *model.attention.parameters(), *model.decoder.parameters()):
        nn.init.zeros_(parameter)
    {"average": _share, "conv": _pair, "bilstm": _first}[kind](model)
    return model


def _share(model: AttentionClassifier) -> None:
    """The states are the polarities, and the attention is uniform."""
    model.encoder.affine.weight.copy_(torch.eye(2))
    model.decoder.weight.copy_(torch.tensor([[8.0, -8.0]]) / np.tanh(1))


def _pair(model: AttentionClassifier) -> None:
    """The channel of width 3 is 1/2 at "good" before "bad", else 0; the attention goes there."""
    convolution = model.encoder.convolutions[1]
    convolution.weight[0, 0, 1] = convolution.weight[0, 1, 2] = 1
    convolution.bias.fill_(-1.5)
    model.attention.context.weight[0, 1] = 2 * SHARP
    model.decoder.weight[0, 1], model.decoder.bias[0] = 12, -3


def _first(model: AttentionClassifier) -> None:
    """Two cells of the forward direction open at their cue as long as none was seen, and keep it."""
    layer = model.encoder.forwards[0]  # rows: input gate, forget gate, candidate, output gate
    layer.weight_ih_l0[:2] = SHARP * torch.eye(2)
    layer.weight_hh_l0[:2] = -2 * SHARP
    layer.bias_ih_l0[:] = torch.tensor([-0.5 * SHARP] * 2 + [SHARP] * 6)
    model.attention.context.weight[0, :2] = 2 * SHARP
    model.decoder.weight[0, :2] = torch.tensor([4.0, -4.0])


def vocabulary() -> Vocabulary:
    """The words of the texts."""
    return Vocabulary(SPECIALS + NEUTRAL + CUES)


def texts(number: int = 40, shortest: int = 4, longest: int = 8, seed: int = 0) -> Split:
    """Random texts with one to three cues, some of which are pairs."""
    random, instances = np.random.default_rng(seed), []
    for index in range(number):
        length = int(random.integers(shortest, longest + 1))
        tokens = random.choice(NEUTRAL, length)
        cues = random.permutation(length)[: random.integers(1, 4)]
        tokens[cues] = random.choice(CUES, len(cues))
        if index % 2:
            start = random.integers(length - 1)
            tokens[start : start + 2] = CUES
        instances.append(Instance(f"wired-{index}", " ".join(tokens), tuple(map(str, tokens)), index % 2))
    return Split("test", tuple(instances), vocabulary())
