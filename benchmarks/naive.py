"""The straightforward side: packed batches of 32 texts sorted by length, a pass of the model for every change.

Leave-one-out and the gradients of states are the definitions of lib.importance, on a packed model. The others are
written after the code that Jain & Wallace (2019) and Serrano & Smith (2019) released, as it runs: where it does more
than the definition asks for (gradients of all weights, loops over texts), so do these.
"""

from itertools import pairwise

import numpy as np
import torch
from scipy.stats import kendalltau
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lib.datasets.batches import Batch, collate
from lib.datasets.corpus import Split
from lib.importance.leave_one_out import leave_one_out_definition
from lib.importance.state_gradients import state_gradients_definition
from lib.models import AttentionClassifier, ModelOutput

BATCH = 32


class PackedClassifier(nn.Module):
    """A BiLSTM classifier with additive attention and one output, on packed sequences; the weights are a model's."""

    def __init__(self, model: AttentionClassifier):
        super().__init__()
        half = model.encoder.hidden_size // 2
        self.embedding = nn.Embedding.from_pretrained(model.embedding.weight.detach().clone(), freeze=False)
        self.encoder = nn.LSTM(self.embedding.embedding_dim, half, batch_first=True, bidirectional=True)
        both = ((model.encoder.forwards[0], ""), (model.encoder.backwards[0], "_reverse"))
        self.encoder.load_state_dict(
            {f"{name}{suffix}": weight for lstm, suffix in both for name, weight in lstm.state_dict().items()}
        )
        self.affine, self.context, self.decoder = (
            nn.Linear(2 * half, half),
            nn.Linear(half, 1, bias=False),
            nn.Linear(2 * half, 1),
        )
        self.affine.load_state_dict(model.attention.affine.state_dict())
        self.context.load_state_dict(model.attention.context.state_dict())
        self.decoder.load_state_dict(model.decoder.state_dict())

    def encode(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        embedded = self.embedding(ids)
        if torch.is_grad_enabled() and not embedded.requires_grad:
            embedded.requires_grad_()
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        return embedded, pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0]

    def attend(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        place = torch.arange(hidden.shape[1])
        mask = (place > 0) & (place < lengths[:, None] - 1)
        scores = self.context(self.affine(hidden).tanh()).squeeze(-1)
        return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)

    def decode(self, attention: Tensor, hidden: Tensor) -> Tensor:
        return self.decoder((attention.unsqueeze(-1) * hidden).sum(dim=-2)).squeeze(-1)

    def logits(self, ids: Tensor, lengths: Tensor) -> Tensor:
        _, hidden = self.encode(ids, lengths)
        return self.decode(self.attend(hidden, lengths), hidden)

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The interface, as far as the definitions of lib.importance need it."""
        embedded, hidden = self.encode(batch.tokens, batch.lengths)
        attention = self.attend(hidden, batch.lengths) if attention is None else attention
        logits = self.decode(attention, hidden)[:, None]
        return ModelOutput(logits, attention, attention, batch.mask, hidden, embedded)

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        return self.decode(attention, output.hidden)[:, None]


def padded(rows: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Ids (batch, word) and lengths of some texts, padded in a Python loop."""
    lengths = [len(row) for row in rows]
    ids = np.zeros((len(rows), max(lengths)), dtype=np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    return torch.from_numpy(ids), torch.tensor(lengths)


def texts(split: Split) -> list[np.ndarray]:
    ids, offsets = split.encoded
    return [ids[start:stop] for start, stop in pairwise(offsets)]


def batched(rows: list) -> list[list]:
    return [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]


def train_epoch(model: PackedClassifier, split: Split) -> None:
    """Batches of texts of about one length (up to a tenth off), in random order; Adam as it comes."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, amsgrad=True, weight_decay=1e-5, foreach=False, fused=False)
    rows, random = texts(split), np.random.default_rng(0)
    about = batched(np.argsort(split.lengths * random.uniform(0.9, 1.1, len(split))).tolist())
    loss_of = nn.BCEWithLogitsLoss(reduction="sum")
    for chosen in (about[i] for i in random.permutation(len(about))):
        logits = model.logits(*padded([rows[i] for i in chosen]))
        loss = loss_of(logits, torch.tensor([float(split.labels[i]) for i in chosen]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def gradients(model: PackedClassifier, split: Split) -> list[np.ndarray]:
    """|gradient . embedding| of each token, attention detached; the whole model is differentiated."""
    found = []
    for rows in batched(texts(split)):
        ids, lengths = padded(rows)
        embedded, hidden = model.encode(ids, lengths)
        embedded.retain_grad()
        model.decode(model.attend(hidden, lengths).detach(), hidden).sigmoid().sum().backward()
        importance = (embedded.grad * embedded).sum(dim=-1).abs()
        found += [importance[row, 1 : length - 1].detach().numpy() for row, length in enumerate(lengths.tolist())]
        model.zero_grad()
    return found


def leave_one_out(model: PackedClassifier, split: Split) -> list[np.ndarray]:
    """|change of p|: for each position one pass over the batch without it."""
    found = []
    for rows in batched(list(range(len(split)))):
        batch = collate(split, np.array(rows))
        values = leave_one_out_definition(model, batch)
        found += [row[mask].numpy() for row, mask in zip(values, batch.mask, strict=True)]
    return found


@torch.no_grad()
def encoded(model: PackedClassifier, split: Split) -> list[tuple[Tensor, Tensor, Tensor]]:
    """(hidden states, attention, lengths) of each batch: what the next two start from."""
    result = []
    for rows in batched(texts(split)):
        ids, lengths = padded(rows)
        _, hidden = model.encode(ids, lengths)
        result.append((hidden, model.attend(hidden, lengths), lengths))
    return result


def permutation_effect(model: PackedClassifier, states: list, draws: int = 100) -> np.ndarray:
    """The median |change of p|: for each draw the decoder computes the attention again, and permutes it.

    As in the released code (Model.permute_attn, AttnDecoder.forward): scores and softmax in every call, with a graph
    for gradients that nobody asks for, a permutation of each text in a Python loop, one gather.
    """
    random, found = np.random.default_rng(0), []
    for hidden, attention, lengths in states:
        base, changes = model.decode(attention, hidden).sigmoid(), []
        for _ in range(draws):
            order = np.tile(np.arange(hidden.shape[1]), (len(hidden), 1))
            for row, length in enumerate(lengths.tolist()):
                order[row, 1 : length - 1] = 1 + random.permutation(length - 2)
            permuted = model.attend(hidden, lengths).gather(-1, torch.from_numpy(order))
            changes.append((model.decode(permuted, hidden).sigmoid() - base).abs().detach().numpy())
        found.append(np.median(changes, axis=0))
    return np.concatenate(found)


def adversary(model: PackedClassifier, states: list, epsilon: float = 0.01, steps: int = 500) -> np.ndarray:
    """Jain & Wallace's search as they run it: Adam through the decoder, five restarts, the last iterate; best JSD."""
    generator, found = torch.Generator().manual_seed(0), []
    for hidden, attention, lengths in states:
        place = torch.arange(hidden.shape[1])
        mask = ((place > 0) & (place < lengths[:, None] - 1))[:, None]
        start = -(lengths - 2.0).log()[:, None, None] + 3 * torch.randn(
            len(lengths), 5, hidden.shape[1], generator=generator
        )
        free = start.requires_grad_()
        optimizer = torch.optim.Adam([free], 0.01, amsgrad=True)
        base, own = model.decode(attention, hidden).sigmoid().detach()[:, None], attention[:, None]
        for _ in range(steps):
            q = torch.softmax(free.masked_fill(~mask, -torch.inf), dim=-1)
            change = (model.decode(q, hidden[:, None]).sigmoid() - base).abs()
            distance = divergence(q, own)
            across = divergence(q[:, :, None], q[:, None])
            loss = (500 * torch.relu(change - epsilon) - distance).sum() - across.sum(dim=0).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        found.append(distance.masked_fill(change > epsilon, 0).max(dim=-1).values.detach().numpy())
    return np.concatenate(found)


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """Jensen-Shannon divergence as they write it: from two of Kullback and Leibler, each clamped, 1e-10 in the logs."""
    middle = (p + q) / 2
    return (_relative_entropy(p, middle) + _relative_entropy(q, middle)) / 2


def _relative_entropy(p: Tensor, q: Tensor) -> Tensor:
    p, q = p.clamp(0, 1), q.clamp(0, 1)
    return (p * ((p + 1e-10).log() - (q + 1e-10).log())).sum(dim=-1)


def kendall(one: list[np.ndarray], other: list[np.ndarray]) -> list[tuple[float, float]]:
    """SciPy, a text at a time."""
    return [tuple(kendalltau(a, b)) for a, b in zip(one, other, strict=True)]


def state_gradients(model: PackedClassifier, split: Split) -> list[np.ndarray]:
    """(state, token) norms of the gradient of each hidden state's norm, a text at a time: a backward pass a state."""
    found = []
    for row in range(len(split)):
        batch = collate(split, np.array([row]))
        found.append(state_gradients_definition(model, batch)[0, 1:-1, 1:-1].numpy())
    return found


def erasures(model: PackedClassifier, states: list) -> np.ndarray:
    """Items erased until the decision flips, (text, ranking): along attention, gradient, product and a random order.

    One decoder pass an item, as Serrano & Smith's code does it; NaN where the decision never flips.
    """
    random, found = np.random.default_rng(0), []
    for hidden, attention, lengths in states:
        for row, length in enumerate(lengths.tolist()):
            inner = slice(1, length - 1)
            weights = attention[row, inner].clone().requires_grad_()
            logit = model.decode(weights, hidden[row, inner])
            decision = bool(logit > 0)
            largest = logit.sigmoid() if decision else (-logit).sigmoid()
            (gradient,) = torch.autograd.grad(largest, weights)
            weights = weights.detach()
            rankings = weights, gradient, gradient * weights, torch.from_numpy(random.random(length - 2))
            found.append([_erased(model, hidden[row, inner], weights, one, decision) for one in rankings])
    return np.array(found)


@torch.no_grad()
def _erased(model: PackedClassifier, hidden: Tensor, weights: Tensor, ranking: Tensor, decision: bool) -> float:
    left = weights.clone()
    for count, place in enumerate(ranking.argsort(descending=True, stable=True), start=1):
        left[place] = 0
        total = left.sum()
        if bool(model.decode(left / total if total > 0 else left, hidden) > 0) != decision:
            return count
    return np.nan
