"""Recording and replacing the attention of a Hugging Face classifier during one forward pass.

A recorder goes down to every layer as the option `recorder` of the forward pass; our attention function, registered
with transformers, hands it the scores, weights and values of each layer, and continues with what it returns.
"""

import copy
from importlib import import_module

import torch
from torch import Tensor, nn

from lib.models.evaluation import gradients_enabled
from lib.models.transformer import Imposed, replaced_heads
from lib.projections import softmax


class AttentionRecorder:
    """Keeps the weights of all layers, each (batch, head, word, word)."""

    def __init__(self):
        self.weights = []

    def attend(self, scores: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        """The output of the heads of the next layer, (batch, head, word, size)."""
        self.weights.append(weights)
        return weights @ values

    def before_last(self, states: Tensor) -> Tensor:
        """The input of the last layer, (batch, word, hidden)."""
        return states


class HeadPatch(AttentionRecorder):
    """Records one head's row of the first word, and replaces its weights or its output there.

    After the forward pass it has `scores` (batch, word) and `values` (batch, word, size) of that head, `heads` (batch,
    head, size), the output of all heads of its layer at the first word, and `state` (batch, hidden), the first word's
    state before the last layer.

    Args:
        head: (layer, head). mask: (batch, word) True on the text's own words.
        attention: (batch, word) over the mask, in place of the head's weights at the first word.
        output: (batch, size), in place of the head's output at the first word.
        imposed: (layer, head) -> weights (batch, word, word) in place of those of any head.
    """

    def __init__(
        self,
        head: tuple[int, int],
        mask: Tensor,
        attention: Tensor | None = None,
        output: Tensor | None = None,
        imposed: Imposed | None = None,
    ):
        self.head, self.mask, self.attention, self.output, self.imposed = head, mask, attention, output, imposed or {}
        self.layer, self.scores, self.values, self.heads, self.state = 0, None, None, None, None

    def attend(self, scores: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        """The heads' output, with imposed heads replaced; records the head that reads out."""
        imposed = {head: given for (layer, head), given in self.imposed.items() if layer == self.layer}
        attended = replaced_heads(weights, imposed) @ values
        if self.layer == self.head[0]:
            head, output = self.head[1], self.output
            self.scores, self.values = scores[:, head, 0], values[:, head]
            if self.attention is not None:
                output = head_output(self.scores, self.values, self.mask, self.attention[:, None])[:, 0]
            if output is not None:
                patched = torch.cat([output[:, None], attended[:, head, 1:]], dim=1)
                attended = replaced_heads(attended, {head: patched})
            self.heads = attended[:, :, 0]
        self.layer += 1
        return attended

    def before_last(self, states: Tensor) -> Tensor:
        """Records the first word's state before the last layer."""
        self.state = states[:, 0]
        return states


class LastLayer(AttentionRecorder):
    """The last layer for the first word alone, of its state (row, hidden) and its heads' output (row, head, size)."""

    def __init__(self, state: Tensor, heads: Tensor):
        self.state, self.heads = state, heads

    def attend(self, scores: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        """The recorded output of the heads."""
        return self.heads[:, :, None]

    def before_last(self, states: Tensor) -> Tensor:
        """The recorded state of the first word."""
        return self.state[:, None]


def head_output(scores: Tensor, values: Tensor, mask: Tensor, attention: Tensor) -> Tensor:
    """A head's output at the first word, (batch, draw, size), under other attentions to the text, (batch, draw, word).

    Start and end keep their weight; the attention distributes the rest.

    Args:
        scores: (batch, word) of its own row. values: (batch, word, size). mask: (batch, word) the text's own words.
    """
    special = softmax(scores, with_ends(mask)).masked_fill(mask, 0)[:, None]
    return (special + (1 - special.sum(dim=-1, keepdim=True)) * attention) @ values


def with_ends(mask: Tensor) -> Tensor:
    """(batch, word) True from start to end, of a mask of the words between them."""
    return torch.arange(mask.shape[1], device=mask.device) < mask.sum(dim=1, keepdim=True) + 2


NAME = "recorded"  # of our attention function among those of transformers
PROBE = 5  # words of the text on which a classifier is tried
TOLERANCE = 1e-3  # between logits of the whole model and of its last layer


class RecordedClassifier(nn.Module):
    """A classifier that reads out its first word, and whose attention can be recorded and replaced.

    `layers` and `heads` count those of its attention. `last_layer` is a copy with the last layer alone, or None where
    that does not compute the same logits.

    Args:
        classifier: of transformers. It is not changed: this is a copy that shares its parameters.
    Raises:
        ImportError: transformers is not installed.
        ValueError: the classifier reads out more than its first word, or does not expose its attention.
    """

    def __init__(self, classifier: nn.Module):
        super().__init__()
        self.whole = recorded_copy(classifier).eval()
        like = self.whole.get_input_embeddings().weight
        words = torch.linspace(-1, 1, PROBE * like.shape[1], device=like.device, dtype=like.dtype)
        probe = words.view(1, PROBE, -1) * like.detach().float().std().to(like.dtype)
        self.layers, self.heads = layers_and_heads(self.whole, probe)
        self.last_layer = last_layer_of(self.whole, self.layers)
        if self.last_layer is not None and not self._last_layer_agrees(probe):
            self.last_layer = None

    def forward(self, embeddings: Tensor, inside: Tensor, recorder: AttentionRecorder) -> Tensor:
        """Logits (batch, class) of embeddings (batch, word, embedding), `inside` (batch, word) True on the texts."""
        return self.whole(inputs_embeds=embeddings, attention_mask=inside.long(), recorder=recorder).logits

    def from_heads(self, state: Tensor, heads: Tensor) -> Tensor:
        """Logits (row, class) of first words' states (row, hidden) and their heads' output (row, head, size)."""
        blank = state.new_zeros(len(state), 1, self.whole.get_input_embeddings().weight.shape[1])
        inside = torch.ones_like(blank[:, :, 0], dtype=torch.long)
        return self.last_layer(inputs_embeds=blank, attention_mask=inside, recorder=LastLayer(state, heads)).logits

    @torch.no_grad()
    def _last_layer_agrees(self, probe: Tensor) -> bool:
        inside = torch.ones_like(probe[:, :, 0], dtype=torch.bool)
        patch = HeadPatch((self.layers - 1, 0), inside)
        expected = self(probe, inside, patch)
        try:
            found = self.from_heads(patch.state, patch.heads)
        except (RuntimeError, TypeError, ValueError, AttributeError, IndexError):
            return False  # the layer needs something that only the whole model computes
        return torch.allclose(found, expected, atol=TOLERANCE, rtol=TOLERANCE)


def recorded_copy(classifier: nn.Module) -> nn.Module:
    """A copy that shares the classifier's parameters, with our attention function.

    Raises:
        ImportError: transformers is not installed, or too old.
    """
    try:
        modeling, masking = (import_module(f"transformers.{name}") for name in ("modeling_utils", "masking_utils"))
        modeling.AttentionInterface.register(NAME, recorded_attention)
        masking.AttentionMaskInterface.register(NAME, masking.eager_mask)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"a Hugging Face model needs the package transformers, version 5: pip install transformers ({error})"
        ) from error
    copied = shared_copy(classifier)
    copied.set_attn_implementation(NAME)
    return copied


def recorded_attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, recorder=None, **options):
    """The "eager" attention function of transformers; the heads' output is the recorder's, if there is one."""
    key, value = (part.repeat_interleave(query.shape[1] // part.shape[1], dim=1) for part in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    scores = scores if attention_mask is None else scores + attention_mask
    weights = nn.functional.dropout(scores.softmax(dim=-1), p=dropout, training=module.training)
    attended = weights @ value if recorder is None else recorder.attend(scores, weights, value)
    return attended.transpose(1, 2).contiguous(), weights


def shared_copy(model: nn.Module) -> nn.Module:
    """A copy of a module that shares its parameters."""
    return copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})


def last_layer_of(model: nn.Module, layers: int) -> nn.Module | None:
    """A copy that shares the model's parameters, with the last of its layers alone; None without a list of layers.

    In both, the recorder may replace the last layer's input.
    """
    lists = [name for name, part in model.named_modules() if isinstance(part, nn.ModuleList) and len(part) == layers]
    if not lists:
        return None
    model.get_submodule(lists[0])[-1].register_forward_pre_hook(record_input, with_kwargs=True)
    copied = shared_copy(model)
    copied.set_submodule(lists[0], nn.ModuleList([copied.get_submodule(lists[0])[-1]]))
    return copied


def record_input(layer: nn.Module, arguments: tuple, options: dict) -> tuple | None:
    """A forward pre-hook of the last layer: its input from the recorder, if there is one."""
    if options.get("recorder") is None or not arguments:
        return None
    return (options["recorder"].before_last(arguments[0]), *arguments[1:]), options


def layers_and_heads(model: nn.Module, probe: Tensor) -> tuple[int, int]:
    """The number of layers, and of heads in each.

    Args:
        probe: (1, word, embedding), a text of several words.
    Raises:
        ValueError: attention is not exposed, or more than the first word's state is read out.
    """
    recorder, kind, words = AttentionRecorder(), type(model).__name__, probe.shape[1]
    everywhere = torch.ones_like(probe[:, :, 0], dtype=torch.long)
    with gradients_enabled(model):
        probe = probe.clone().requires_grad_()
        try:
            output = model(inputs_embeds=probe, attention_mask=everywhere, recorder=recorder, output_hidden_states=True)
        except (TypeError, NotImplementedError) as error:
            raise ValueError(f"a {kind} does not take embeddings, or does not expose its attention: {error}") from error
        if not recorder.weights or any(weights.shape[2:] != (words, words) for weights in recorder.weights):
            raise ValueError(f"a {kind} does not expose its attention through transformers' AttentionInterface")
        last = getattr(output, "hidden_states", None) or [probe]
        (gradient,) = torch.autograd.grad(output.logits.square().sum(), last[-1], allow_unused=True)
    read = [] if gradient is None else (gradient[0] != 0).any(dim=-1).nonzero().flatten().tolist()
    if read != [0]:
        raise ValueError(
            f"a {kind} has no classifying token in front: of a text of {words} words it reads out the states of words "
            f"{read}, counted from 0; allowed: one that reads out word 0 alone, such as BERT, RoBERTa or DistilBERT"
        )
    return len(recorder.weights), recorder.weights[0].shape[1]
