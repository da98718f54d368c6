"""Words hidden from a model that is to guess them (Devlin et al. 2019, as Tutek & Snajder 2020 use it)."""

import torch
from torch import Tensor

from lib.datasets.corpus import SPECIALS

KEPT_MASKED, REPLACED = 0.8, 0.9  # of the chosen: below the first the mask, below the second a random word


def masked(tokens: Tensor, mask: Tensor, words: int, share: float) -> tuple[Tensor, Tensor]:
    """Tokens with some of them hidden, and where: (batch, token) ids, (batch, token) bool.

    Each word of a text is chosen by itself with probability `share`; of the chosen 80% become the mask, 10% a random
    word, 10% stay. Padding, start, end and unknown words are never chosen, and never put in another's place.

    Args:
        tokens: (batch, token) ids. mask: (batch, token), True on the texts' own tokens.
        words: the size of the vocabulary, which is the mask's id.
    """
    chosen = mask & (tokens >= len(SPECIALS)) & (torch.rand(tokens.shape, device=tokens.device) < share)
    how = torch.rand(tokens.shape, device=tokens.device)
    others = torch.randint(len(SPECIALS), words, tokens.shape, device=tokens.device)
    hidden = torch.where(how < KEPT_MASKED, words, torch.where(how < REPLACED, others, tokens))
    return torch.where(chosen, hidden, tokens), chosen
