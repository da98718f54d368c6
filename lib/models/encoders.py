"""Encoders: from embedded words (batch, word, embedding) to hidden states (batch, word, hidden).

A new encoder is a class here and an entry in ENCODERS. `hidden_size` has a default and is an attribute, `layers` is
taken by one that can have several; lengths (batch,) include start and end, and padding must not be read.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from lib.datasets import pretrained
from lib.models.transformer import Transformer


def reversed_by_length(sequences: Tensor, lengths: Tensor) -> Tensor:
    """Each text (batch, word, feature) reversed, with the padding still behind it; its own inverse."""
    position = torch.arange(sequences.shape[1], device=sequences.device)
    mirrored = lengths[:, None] - 1 - position
    index = torch.where(mirrored >= 0, mirrored, position)
    return sequences.gather(1, index[:, :, None].expand_as(sequences))


class Bidirectional(nn.Module):
    """A recurrent layer in each direction, their states concatenated: `hidden_size`, an even number, in all.

    The second reads the texts reversed by length, never padding: on long texts several times faster than packing.
    """

    kind: type[nn.RNNBase]

    def __init__(self, embedding_size: int, hidden_size: int = 256, layers: int = 1):
        super().__init__()
        if hidden_size % 2:
            raise ValueError(f"hidden_size is {hidden_size}; a {type(self).__name__} needs an even number")
        self.hidden_size = hidden_size
        sizes = [embedding_size] + [hidden_size] * (layers - 1)
        self.forwards = nn.ModuleList(self.kind(size, hidden_size // 2, batch_first=True) for size in sizes)
        self.backwards = nn.ModuleList(self.kind(size, hidden_size // 2, batch_first=True) for size in sizes)

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        for forward, backward in zip(self.forwards, self.backwards, strict=True):
            left_to_right = forward(embedded)[0]
            right_to_left = backward(reversed_by_length(embedded, lengths))[0]
            embedded = torch.cat([left_to_right, reversed_by_length(right_to_left, lengths)], dim=-1)
        return embedded


class BiLSTM(Bidirectional):
    """An LSTM in each direction."""

    kind = nn.LSTM


class BiGRU(Bidirectional):
    """A GRU in each direction; weights start Xavier uniform, recurrent ones orthogonal (Serrano & Smith's code)."""

    kind = nn.GRU

    def __init__(self, embedding_size: int, hidden_size: int = 100, layers: int = 1):
        super().__init__(embedding_size, hidden_size, layers)
        for name, weight in self.named_parameters():
            if "weight_ih" in name:
                nn.init.xavier_uniform_(weight)
            elif "weight_hh" in name:
                nn.init.orthogonal_(weight)


class Identity(nn.Module):
    """No encoder: each hidden state is its embedding (Serrano & Smith 2019, section 3)."""

    def __init__(self, embedding_size: int, hidden_size: int | None = None):
        super().__init__()
        if hidden_size not in (None, embedding_size):
            raise ValueError(f"hidden_size is {hidden_size}; without an encoder it is {embedding_size}")
        self.hidden_size = embedding_size

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        return embedded


class Average(nn.Module):
    """One affine layer and tanh, for each word separately.

    Differs from the paper: Jain & Wallace (2019, section 2) have ReLU; their code has tanh.
    """

    def __init__(self, embedding_size: int, hidden_size: int = 128):
        super().__init__()
        self.hidden_size = hidden_size
        self.affine = nn.Linear(embedding_size, hidden_size)

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        return self.affine(embedded).tanh()


class Convolution(nn.Module):
    """Convolutions over words, of odd widths, with "same" padding, ReLU and dropout; `hidden_size` channels in all."""

    def __init__(
        self, embedding_size: int, hidden_size: int = 128, widths: tuple[int, ...] = (1, 3, 5, 7), dropout: float = 0.0
    ):
        super().__init__()
        if hidden_size % len(widths):
            raise ValueError(f"hidden_size is {hidden_size}; it must be a multiple of the {len(widths)} widths")
        self.hidden_size = hidden_size
        self.dropout = nn.Dropout(dropout)
        channels = hidden_size // len(widths)
        filters = (nn.Conv1d(embedding_size, channels, width, padding=width // 2) for width in widths)
        self.convolutions = nn.ModuleList(filters)

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        inside = torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
        channels_first = (embedded * inside[:, :, None]).transpose(1, 2)
        outputs = torch.relu(torch.cat([conv(channels_first) for conv in self.convolutions], dim=1))
        return self.dropout(outputs.transpose(1, 2))


class Concatenation(nn.Module):
    """[encoder(e); e], hidden state and embedding concatenated (Tutek & Snajder 2020, Eq. 2)."""

    def __init__(self, encoder: nn.Module, embedding_size: int):
        super().__init__()
        self.encoder = encoder
        self.hidden_size = encoder.hidden_size + embedding_size

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        return torch.cat([self.encoder(embedded, lengths), embedded], dim=-1)


class Residual(nn.Module):
    """e + encoder(e), of equal sizes (Tutek & Snajder 2020, Eq. 3)."""

    def __init__(self, encoder: nn.Module, embedding_size: int):
        super().__init__()
        self.encoder = encoder
        self.hidden_size = embedding_size

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        return embedded + self.encoder(embedded, lengths)


class Pretrained(nn.Module):
    """A pretrained Transformer, from its folder: the states of its last layer; it learns further, or is frozen."""

    words_at_once = 2**12  # every layer keeps much for each word

    def __init__(self, embedding_size: int, folder: Path, frozen: bool = False):
        super().__init__()
        self.transformer = pretrained.encoder_of(folder).requires_grad_(not frozen)
        self.hidden_size, self.frozen = self.transformer.config.hidden_size, frozen

    def train(self, mode: bool = True) -> "Pretrained":
        """Puts it into training mode; a frozen one stays as it is, without dropout."""
        return super().train(mode and not self.frozen)

    def forward(self, embedded: Tensor, lengths: Tensor, inner: list[Tensor] | None = None) -> Tensor:
        """(batch, word, hidden). The weights of each layer, (batch, head, word, word), are added to a list `inner`."""
        inside = (torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]).long()
        self.transformer.set_attn_implementation("sdpa" if inner is None else pretrained.RECORDED)
        recorder = {} if inner is None else {"recorder": inner}
        return self.transformer(inputs_embeds=embedded, attention_mask=inside, **recorder).last_hidden_state


def last_states(hidden: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    """(batch, hidden): the last state of each direction."""
    half = hidden.shape[-1] // 2
    rows = torch.arange(len(hidden), device=hidden.device)
    return torch.cat([hidden[rows, lengths - 1, :half], hidden[:, 0, half:]], dim=-1)


def mean(hidden: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    """(batch, hidden): the mean over all words, start and end included; in Jain & Wallace's code over padding too."""
    inside = torch.arange(hidden.shape[1], device=hidden.device) < lengths[:, None]
    return (hidden * inside[:, :, None]).sum(dim=1) / lengths[:, None]


def maximum(hidden: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    """(batch, hidden): the maximum of each channel, 0 or more after ReLU, over the question's own words."""
    return hidden.masked_fill(~mask[:, :, None], 0).amax(dim=1)


# Each with what makes one vector of a question's states (batch, word, hidden), lengths (batch,), mask (batch, word)
QUESTION_ENCODERS = {"bilstm": (BiLSTM, last_states), "average": (Average, mean), "conv": (Convolution, maximum)}
# Serrano & Smith (2019), section 3 and appendix A.1: a state depends on the whole text, on its neighbours, on no other.
# "flan": one encoder over all words; "han": one over the words of a sentence, one over the sentences.
SERRANO = {"rnn": BiGRU, "conv": partial(Convolution, hidden_size=100, widths=(3, 5), dropout=0.3), "noenc": Identity}
FLAN = {f"flan-{name}": kind for name, kind in SERRANO.items()}
HIERARCHICAL = {f"han-{name}": kind for name, kind in SERRANO.items()}
ENCODERS = {"bilstm": BiLSTM, "average": Average, "conv": Convolution, "transformer": Transformer, **FLAN}
FROZEN = ":frozen"  # at the end of a pretrained model's name: it does not learn
RETENTIONS = {"concat": Concatenation, "residual": Residual}  # what is added to an encoder's states


def encoder_kind(name: str) -> Callable[..., nn.Module]:
    """The class of an encoder by its name, a pretrained model's too; KeyError for another."""
    if pretrained.is_pretrained(name):
        return partial(Pretrained, frozen=name.endswith(FROZEN))
    return (ENCODERS | HIERARCHICAL)[name]


def known_encoder(name: str) -> str:
    """The name, if it is an encoder's or a pretrained model's; ValueError with what is allowed otherwise."""
    names = (*ENCODERS, *HIERARCHICAL, *pretrained.KNOWN)
    if name not in names and not pretrained.is_pretrained(name):
        raise ValueError(f"allowed: {', '.join(names)}, or the path of a Hugging Face folder")
    return name
