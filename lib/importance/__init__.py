"""How much each token matters to the prediction, by gradients and by leaving it out.

Each measure is there twice: `<name>_definition`, as its paper writes it, and `<name>`, which gives the same by an exact
shortcut where the model has one (lib.fast.shortcuts).
"""

from collections.abc import Callable

from torch import Tensor

from lib.importance.gradients import (
    gradient,
    gradient_definition,
    gradient_times_input,
    gradient_times_input_definition,
)
from lib.importance.inner_attention import inner_attention, rollout
from lib.importance.integrated_gradients import integrated_gradients
from lib.importance.leave_one_out import (
    leave_one_out,
    leave_one_out_definition,
    logits_without_each_token_definition,
)
from lib.importance.rankings import RANKINGS, by_first_order, by_gradient_definition
from lib.importance.state_gradients import of_inputs_to_states, own_share, state_entropy, state_gradients_definition
from lib.quantity import Quantity

__all__ = [
    "RANKINGS",
    "by_first_order",
    "by_gradient_definition",
    "gradient",
    "gradient_definition",
    "gradient_times_input",
    "gradient_times_input_definition",
    "inner_attention",
    "integrated_gradients",
    "leave_one_out",
    "leave_one_out_definition",
    "logits_without_each_token_definition",
    "of_inputs_to_states",
    "own_share",
    "quantity",
    "rollout",
    "state_entropy",
    "state_gradients_definition",
]

MAX_TOKENS = {leave_one_out: 2000}  # the longest text that it is computed for, where there is a bound
UNITS = {leave_one_out: "fraction", integrated_gradients: "fraction"}


def quantity(name: str, function: Callable[..., Tensor], max_tokens: int | None = None, **options) -> Quantity:
    """An importance, function(model, batch, **options) -> (batch, token), as a quantity for `measure`.

    Args:
        max_tokens: the longest text it is computed for; None: the function's own bound, if it has one.
    """
    longest = MAX_TOKENS.get(function) if max_tokens is None else max_tokens
    unit = UNITS.get(function, "1")
    return Quantity(name, lambda model, batch, output: function(model, batch, **options), unit, max_tokens=longest)
