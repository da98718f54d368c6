"""What the attention of a Hugging Face model shows in one forward pass, layer by layer, and what is put in its place.

An object of a class below goes down to every layer as the option `look`, and is asked there by our attention function
(lib.models.huggingface_hooks).
"""

import copy
from collections.abc import Mapping
from importlib import import_module

import torch
from torch import Tensor, nn

from lib.models.cudnn import gradients_of
from lib.projections import softmax


class EveryLayer:
    """Keeps the weights of all layers, each (batch, head, word, word)."""

    def __init__(self):
        self.weights = []

    def attend(self, scores: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        """What the heads of the next layer say, (batch, head, word, size)."""
        self.weights.append(weights)
        return weights @ values

    def enter(self, states: Tensor) -> Tensor:
        """What the last layer reads, (batch, word, hidden)."""
        return states


class Row(EveryLayer):
    """Keeps one head's row of the first word; puts another attention, or what it would say, in its place.

    Afterwards it has scores (batch, word) and values (batch, word, size) of that head, what all heads of its layer say
    at the first word, heads (batch, head, size), and that word's state (batch, hidden) before the last layer.

    Args:
        row: (layer, head). mask: (batch, word) the text's own words.
        attention: (batch, word) over the mask. said: (batch, size).
        imposed: (layer, head) -> weights (batch, word, word) put in place of those of any head.
    """

    def __init__(
        self,
        row: tuple[int, int],
        mask: Tensor,
        attention: Tensor | None = None,
        said: Tensor | None = None,
        imposed: Mapping[tuple[int, int], Tensor] | None = None,
    ):
        self.row, self.mask, self.attention, self.said, self.imposed = row, mask, attention, said, imposed or {}
        self.layer, self.scores, self.values, self.heads, self.state = 0, None, None, None, None

    def attend(self, scores: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        here = {head: given for (layer, head), given in self.imposed.items() if layer == self.layer}
        attended = with_heads(weights, here) @ values
        if self.layer == self.row[0]:
            head, said = self.row[1], self.said
            self.scores, self.values = scores[:, head, 0], values[:, head]
            if self.attention is not None:
                said = spoken(self.scores, self.values, self.mask, self.attention)
            if said is not None:
                attended = with_heads(attended, {head: torch.cat([said[:, None], attended[:, head, 1:]], dim=1)})
            self.heads = attended[:, :, 0]
        self.layer += 1
        return attended

    def enter(self, states: Tensor) -> Tensor:
        self.state = states[:, 0]
        return states


class Tail(EveryLayer):
    """The last layer for the first word alone: its state (row, hidden), and what its heads say (row, head, size)."""

    def __init__(self, state: Tensor, heads: Tensor):
        self.state, self.heads = state, heads

    def attend(self, scores: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        return self.heads[:, :, None]

    def enter(self, states: Tensor) -> Tensor:
        return self.state[:, None]


def with_heads(parts: Tensor, others: Mapping[int, Tensor]) -> Tensor:
    """(batch, head, ...) with some heads' parts exchanged."""
    if not others:
        return parts
    return torch.stack([others.get(head, own) for head, own in enumerate(parts.unbind(1))], dim=1)


def spoken(scores: Tensor, values: Tensor, mask: Tensor, attention: Tensor) -> Tensor:
    """What a head says at the first word, when it attends to the text as told.

    What start and end hold of the weight stays theirs; the rest is spread as the attention says.

    Args:
        scores: (batch, word) of its own row. values: (batch, word, size). mask: (batch, word) the text's own words.
        attention: (batch, word) or (batch, draw, word).
    Returns:
        (batch, size) or (batch, draw, size).
    """
    special = softmax(scores, of_text(mask)).masked_fill(mask, 0)
    rest = 1 - special.sum(dim=-1, keepdim=True)
    if attention.dim() == 2:
        return ((special + rest * attention)[:, None] @ values).squeeze(1)
    return (special[:, None] + rest[:, None] * attention) @ values


def of_text(mask: Tensor) -> Tensor:
    """(batch, word) True from start to end, from the mask of the words between them."""
    return torch.arange(mask.shape[1], device=mask.device) < mask.sum(dim=1, keepdim=True) + 2


NAME = "shown"  # our attention function among those of transformers
PROBE = 5  # words of the text on which a model is tried
SAME = 1e-3  # how far two ways to the same logits may lie apart


class Seen(nn.Module):
    """A classifier that reads out its first word.

    `layers` and `heads` count those of its attention. `tail` is its last layer by itself with all that follows, or None
    where that does not say what the whole model does.

    Args:
        classifier: of transformers. It stays as it is; this one is a copy that has the very same parameters.
    Raises:
        ImportError: transformers is not installed.
        ValueError: the classifier reads out more than its first word, or does not show its attention.
    """

    def __init__(self, classifier: nn.Module):
        super().__init__()
        self.whole = copy_that_shows(classifier).eval()
        like = self.whole.get_input_embeddings().weight
        words = torch.linspace(-1, 1, PROBE * like.shape[1], device=like.device, dtype=like.dtype)
        probe = words.view(1, PROBE, -1) * like.detach().float().std().to(like.dtype)
        self.layers, self.heads = layers_and_heads(self.whole, probe)
        self.tail = last_layer_alone(self.whole, self.layers)
        if self.tail is not None and not self._tail_says_the_same(probe):
            self.tail = None

    def forward(self, embeddings: Tensor, inside: Tensor, look: EveryLayer) -> Tensor:
        """Logits (batch, class) of embedded words (batch, word, embedding), True `inside` (batch, word) the texts."""
        return self.whole(inputs_embeds=embeddings, attention_mask=inside.long(), look=look).logits

    def from_heads(self, state: Tensor, heads: Tensor) -> Tensor:
        """Logits (row, class) when the heads of the last layer say (row, head, size) at a first word of that state."""
        size = self.whole.get_input_embeddings().weight.shape[1]
        blank = state.new_zeros(len(state), 1, size)
        inside = torch.ones_like(blank[:, :, 0], dtype=torch.long)
        return self.tail(inputs_embeds=blank, attention_mask=inside, look=Tail(state, heads)).logits

    @torch.no_grad()
    def _tail_says_the_same(self, probe: Tensor) -> bool:
        inside = torch.ones_like(probe[:, :, 0], dtype=torch.bool)
        look = Row((self.layers - 1, 0), inside)
        expected = self(probe, inside, look)
        try:
            found = self.from_heads(look.state, look.heads)
        except (RuntimeError, TypeError, ValueError, AttributeError, IndexError):
            return False  # whatever a layer wants that only the whole model gives
        return torch.allclose(found, expected, atol=SAME, rtol=SAME)


def copy_that_shows(classifier: nn.Module) -> nn.Module:
    """A copy with the same parameters, not equal ones, whose attention function is `shown`.

    Raises:
        ImportError: transformers is not installed, or too old.
    """
    try:
        modeling, masking = (import_module(f"transformers.{name}") for name in ("modeling_utils", "masking_utils"))
        modeling.AttentionInterface.register(NAME, shown)
        masking.AttentionMaskInterface.register(NAME, masking.eager_mask)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"a Hugging Face model needs the package transformers, version 5: pip install transformers ({error})"
        ) from error
    made = shared_copy(classifier)
    made.set_attn_implementation(NAME)
    return made


def shown(module, query, key, value, attention_mask, scaling=None, dropout=0.0, look=None, **options):
    """An attention function of transformers, as its "eager" one, that asks `look` what the heads say."""
    key, value = (part.repeat_interleave(query.shape[1] // part.shape[1], dim=1) for part in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    scores = scores if attention_mask is None else scores + attention_mask
    weights = nn.functional.dropout(scores.softmax(dim=-1), p=dropout, training=module.training)
    attended = weights @ value if look is None else look.attend(scores, weights, value)
    return attended.transpose(1, 2).contiguous(), weights


def shared_copy(model: nn.Module) -> nn.Module:
    """A copy of a module that has the very parameters of the first."""
    return copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})


def last_layer_alone(model: nn.Module, layers: int) -> nn.Module | None:
    """A copy with the same parameters, of whose layers the last alone is left; before it `entered` asks what it reads.

    None where there is no list of so many layers.
    """
    lists = [name for name, part in model.named_modules() if isinstance(part, nn.ModuleList) and len(part) == layers]
    if not lists:
        return None
    model.get_submodule(lists[0])[-1].register_forward_pre_hook(entered, with_kwargs=True)
    tail = shared_copy(model)
    tail.set_submodule(lists[0], nn.ModuleList([tail.get_submodule(lists[0])[-1]]))
    return tail


def entered(layer: nn.Module, arguments: tuple, options: dict) -> tuple | None:
    """A hook before the last layer that asks `look` what it reads."""
    if options.get("look") is None or not arguments:
        return None
    return (options["look"].enter(arguments[0]), *arguments[1:]), options


def layers_and_heads(model: nn.Module, probe: Tensor) -> tuple[int, int]:
    """How many of each there are.

    Args:
        probe: (1, word, embedding) a text of several words.
    Raises:
        ValueError: attention is not shown, or more than the first word's state is read out.
    """
    look, kind, words = EveryLayer(), type(model).__name__, probe.shape[1]
    everywhere = torch.ones_like(probe[:, :, 0], dtype=torch.long)
    with gradients_of(model):
        given = probe.clone().requires_grad_()
        try:
            found = model(inputs_embeds=given, attention_mask=everywhere, look=look, output_hidden_states=True)
        except (TypeError, NotImplementedError) as error:
            raise ValueError(
                f"a {kind} does not take embedded words, or does not show its attention: {error}"
            ) from error
        if not look.weights or any(weights.shape[2:] != (words, words) for weights in look.weights):
            raise ValueError(f"a {kind} does not show its attention by transformers' AttentionInterface")
        last = getattr(found, "hidden_states", None) or [given]
        (gradient,) = torch.autograd.grad(found.logits.square().sum(), last[-1], allow_unused=True)
    read = [] if gradient is None else (gradient[0] != 0).any(dim=-1).nonzero().flatten().tolist()
    if read != [0]:
        raise ValueError(
            f"a {kind} has no classifying token in front: of a text of {words} words it reads out the states of words "
            f"{read}, counted from 0; allowed: one that reads out word 0 alone, such as BERT, RoBERTa or DistilBERT"
        )
    return len(look.weights), look.weights[0].shape[1]
