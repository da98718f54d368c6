"""How much each hidden state is asked for: (batch, token, hidden) -> scores (batch, token)."""

from torch import Tensor, nn


class Additive(nn.Module):
    """v . tanh(W h + b), W: hidden -> hidden / 2, v without bias (Jain & Wallace 2019, section 2, no query)."""

    def __init__(self, hidden_size: int):
        super().__init__()
        self.affine = nn.Linear(hidden_size, hidden_size // 2)
        self.context = nn.Linear(hidden_size // 2, 1, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.context(self.affine(hidden).tanh()).squeeze(-1)


class Dot(nn.Module):
    """w . h / sqrt(hidden): scaled dot product with a learned w (Jain & Wallace 2019, section 2, no query)."""

    def __init__(self, hidden_size: int):
        super().__init__()
        self.context = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.context(hidden).squeeze(-1) / hidden.shape[-1] ** 0.5


ATTENTIONS = {"additive": Additive, "dot": Dot}
