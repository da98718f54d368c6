"""Encoders whose hidden states hold on to their input (Tutek & Snajder 2020, section 3.1)."""

import torch
from torch import Tensor, nn


class Concatenation(nn.Module):
    """[encoder(e); e]: hidden state and embedding side by side (Eq. 2)."""

    def __init__(self, encoder: nn.Module, embedding_size: int):
        super().__init__()
        self.encoder = encoder
        self.hidden_size = encoder.hidden_size + embedding_size

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        return torch.cat([self.encoder(embedded, lengths), embedded], dim=-1)


class Residual(nn.Module):
    """e + encoder(e) (Eq. 3).

    Raises:
        ValueError: the hidden states have not the size of the embeddings.
    """

    def __init__(self, encoder: nn.Module, embedding_size: int):
        super().__init__()
        refuse_other_sizes("a residual connection", encoder.hidden_size, embedding_size)
        self.encoder = encoder
        self.hidden_size = encoder.hidden_size

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        return embedded + self.encoder(embedded, lengths)


RETENTIONS = {"concat": Concatenation, "residual": Residual}


def refuse_other_sizes(what: str, hidden_size: int, embedding_size: int) -> None:
    """Raises ValueError where hidden states and embeddings cannot be added or compared."""
    if hidden_size != embedding_size:
        raise ValueError(
            f"{what} needs hidden states of the embeddings' size: hidden_size is {hidden_size}, embedding_size "
            f"{embedding_size}; set hidden_size={embedding_size}"
        )
