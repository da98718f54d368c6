"""How much each token matters to the prediction, by gradients and by leaving it out."""

from lib.importance.gradients import gradient, gradient_times_input, leave_one_out, quantity

__all__ = ["gradient", "gradient_times_input", "leave_one_out", "quantity"]
