"""How much each token matters to the prediction, by gradients and by leaving it out."""

from lib.importance.gradients import as_quantity, gradient, gradient_times_input, leave_one_out

__all__ = ["as_quantity", "gradient", "gradient_times_input", "leave_one_out"]
