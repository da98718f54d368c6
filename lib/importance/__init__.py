"""How much each token matters to the prediction, by gradients, by leaving it out and by its attention.

Of what is there twice, `<name>_definition` is as its paper writes it, and `<name>` gives the same sooner.
"""

from collections.abc import Callable

from torch import Tensor

from lib.importance.attention import attention_times_contribution, attention_times_norm, every_map, self_attention
from lib.importance.deletions import logits_without_each_token_definition
from lib.importance.gradients import gradient, gradient_times_input, integrated_gradients
from lib.importance.leave_one_out import MAX_TOKENS, leave_one_out, leave_one_out_with_sign, top_word_share
from lib.importance.rankings import RANKINGS, by_gradient
from lib.importance.state_gradients import inputs_to_states, of_inputs_to_states, state_gradients_definition
from lib.quantity import Quantity


def quantity(name: str, function: Callable[..., Tensor], max_tokens: int | None = None, **options) -> Quantity:
    """An importance, function(model, batch, **options) -> (batch, token) or (batch,), as a quantity for `measure`.

    Longer texts than `max_tokens` are left out; None: the function's own bound, if it has one.
    """
    if max_tokens is None and function is leave_one_out:
        max_tokens = MAX_TOKENS
    unit = "fraction" if function in (leave_one_out, integrated_gradients) else "1"
    return Quantity(name, lambda model, batch, output: function(model, batch, **options), unit, max_tokens=max_tokens)
