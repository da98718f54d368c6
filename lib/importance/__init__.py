"""How much each token matters to the prediction, by gradients and by leaving it out.

Where a measure is there twice, `<name>_definition` is as its paper writes it, and `<name>` gives the same by an exact
shortcut where the model has one (lib.fast.shortcuts).
"""

from collections.abc import Callable

from torch import Tensor

from lib.importance.attention import attention_times_contribution, attention_times_norm, inner_attention
from lib.importance.gradients import (
    change_from_baseline,
    gradient,
    gradient_definition,
    gradient_times_input,
    gradient_times_input_definition,
    integrated_gradients,
)
from lib.importance.leave_one_out import (
    MAX_TOKENS,
    leave_one_out,
    leave_one_out_definition,
    leave_one_out_unseen,
    leave_one_out_with_sign,
    logits_without_each_token_definition,
)
from lib.importance.rankings import RANKINGS, by_first_order, by_gradient_definition
from lib.importance.state_gradients import facets, inputs_to_states, of_inputs_to_states, state_gradients_definition
from lib.models.transformer import rollout
from lib.quantity import Quantity

LONGEST = dict.fromkeys(
    (leave_one_out, leave_one_out_unseen), MAX_TOKENS
)  # the longest text that it is computed for, where there is a bound
UNITS = dict.fromkeys((leave_one_out, leave_one_out_unseen, integrated_gradients, change_from_baseline), "fraction")


def quantity(name: str, function: Callable[..., Tensor], max_tokens: int | None = None, **options) -> Quantity:
    """An importance, function(model, batch, **options) -> (batch, token) or (batch,), as a quantity for `measure`.

    Args:
        max_tokens: the longest text it is computed for; None: the function's own bound, if it has one.
    """
    longest = LONGEST.get(function) if max_tokens is None else max_tokens
    unit = UNITS.get(function, "1")
    return Quantity(name, lambda model, batch, output: function(model, batch, **options), unit, max_tokens=longest)
