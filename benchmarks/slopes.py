"""How a cost grows: the slope of a line through logarithms, and whether it is the one that the algorithm promises."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

NEAR = 0.15  # slopes that differ by less are called the same, or by less than two standard errors


@dataclass(frozen=True)
class Slope:
    """value ± error (the standard error of the line), and what the same points of the promised cost give."""

    value: float
    error: float
    promised: float

    @property
    def verdict(self) -> str:
        apart = self.value - self.promised
        if abs(apart) <= max(NEAR, 2 * self.error):
            return "as promised"
        return "steeper" if apart > 0 else "flatter: fixed costs still weigh"


def line(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """(slope, its standard error) of log cost over log size, by least squares.

    Raises:
        ValueError: fewer than three points, or one that is not above 0.
    """
    if len(sizes) != len(costs) or len(sizes) < 3 or min(*sizes, *costs) <= 0:
        raise ValueError(f"sizes {list(sizes)} and costs {list(costs)}: a slope needs three points or more, above 0")
    x, y = np.log(sizes), np.log(costs)
    x, y = x - x.mean(), y - y.mean()
    slope = (x @ y) / (x @ x)
    return float(slope), math.sqrt(float(((y - slope * x) ** 2).sum() / (len(x) - 2) / (x @ x)))


def compared(sizes: Sequence[float], costs: Sequence[float], promise: Callable[[float], float], above: float) -> Slope:
    """The slope over the sizes of `above` and more, beside that of the promised cost at the same sizes."""
    upper = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if size >= above]
    chosen, found = zip(*upper, strict=True) if upper else ((), ())
    return Slope(*line(chosen, found), line(chosen, [promise(size) for size in chosen])[0])
