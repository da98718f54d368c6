"""Attention: from hidden states (batch, token, hidden) to scores (batch, token) (Jain & Wallace 2019, section 2).

In tasks with a question the scores also depend on the encoded question, the query (batch, hidden).
"""

from functools import partial

from torch import Tensor, nn

QUERY_INITS = ("default", "normal")


class Additive(nn.Module):
    """v . tanh(W h + b), with a query v . tanh(W1 h + W2 q); v has no bias.

    share: the size of W h by that of h, 0.5 in their paper, 1 in Serrano & Smith (2019).
    """

    def __init__(self, hidden_size: int, share: float = 0.5, with_query: bool = False):
        super().__init__()
        size = max(1, int(hidden_size * share))
        self.affine = nn.Linear(hidden_size, size)
        if with_query:
            self.affine_query = nn.Linear(hidden_size, size)
        self.context = nn.Linear(size, 1, bias=False)

    def forward(self, hidden: Tensor, query: Tensor | None = None) -> Tensor:
        inner = self.affine(hidden)
        if query is not None:
            inner = inner + self.affine_query(query)[:, None]
        return self.context(inner.tanh()).squeeze(-1)


class Dot(nn.Module):
    """w . h / sqrt(hidden), scaled dot product with a learned w.

    query_init: w starts as torch's Linear, or "normal", from N(0, 1), without which the attention stays uniform
    (Tutek & Snajder 2020, appendix C).
    """

    def __init__(self, hidden_size: int, query_init: str = "default"):
        super().__init__()
        self.context = nn.Linear(hidden_size, 1, bias=False)
        if query_init == "normal":
            nn.init.normal_(self.context.weight)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.context(hidden).squeeze(-1) / hidden.shape[-1] ** 0.5


class DotWithQuery(nn.Module):
    """h . q / sqrt(hidden), without parameters."""

    def __init__(self, hidden_size: int, share: float = 0.5):
        super().__init__()

    def forward(self, hidden: Tensor, query: Tensor) -> Tensor:
        return (hidden @ query[:, :, None]).squeeze(-1) / hidden.shape[-1] ** 0.5


ATTENTIONS = {"additive": Additive, "dot": Dot}
WITH_QUERY = {"additive": partial(Additive, with_query=True), "dot": DotWithQuery}


def xavier(model: nn.Module) -> None:
    """Reinitialises linear layers: weights from Xavier's uniform distribution, biases 0 (Serrano & Smith's code)."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
