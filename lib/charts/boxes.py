"""Boxes: the middle half of the texts, their median, and how far the others reach."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from lib.charts.theme import Empty, caption_of_rows, facets, or_a_sentence, series_color, titled
from lib.quantity import title_of, unit_of

HOW_TO_READ = "Box: the middle half of the texts; line: texts at most 1.5 times the height of the box away from it."


@or_a_sentence
def boxes(instances: pd.DataFrame, quantities: Sequence[str], along: str, title: str, see: str) -> alt.TopLevelMixin:
    """A box for each value of the column `along` and each quantity, one panel an encoder, all seeds together.

    Meister et al. 2021, figure 2 (entropies by projection); Serrano & Smith 2019, figure 6 (fractions erased by
    ranking).

    Args:
        instances: rows of lib.analysis.measure; `along` has texts, drawn in the order in which they come.
    """
    rows = [
        box_of(values.dropna()) | {"encoder": title_of(encoder), along: title_of(at), "series": title_of(quantity)}
        for quantity in quantities
        for (encoder, at), values in instances.groupby(["encoder", along], sort=False)[quantity]
        if values.notna().any()
    ]
    if not rows:
        raise Empty(f"no text has a value of {', '.join(quantities)}")
    frame, series = pd.DataFrame(rows), [title_of(name) for name in quantities]
    order = [title_of(value) for value in instances[along].unique()]
    x = alt.X(f"{along}:N", sort=order, title=along, axis=alt.Axis(labelAngle=-45))
    base = alt.Chart().encode(x, alt.XOffset("series:N", sort=series), series_color(series))
    width, unit = alt.RelativeBandSize(0.8), unit_of(quantities[0])
    layers = [
        base.mark_rule(strokeWidth=1.5).encode(alt.Y("least:Q", title=unit), alt.Y2("most")),
        base.mark_bar(opacity=0.55, width=width).encode(alt.Y("lower:Q", title=unit), alt.Y2("upper")),
        base.mark_tick(thickness=2, width=width, tooltip=True).encode(alt.Y("median:Q", title=unit)),
    ]
    drawn = facets(frame, layers, "encoder", height=200 if frame["encoder"].nunique() < 3 else 150)
    return titled(drawn, title, [see, HOW_TO_READ, caption_of_rows(instances)])


def box_of(values: pd.Series) -> dict[str, float]:
    """lower, median and upper of the box, least and most of its line."""
    lower, median, upper = values.quantile([0.25, 0.5, 0.75])
    reach = 1.5 * (upper - lower)
    inside = values[values.between(lower - reach, upper + reach)]
    return {"least": inside.min(), "lower": lower, "median": median, "upper": upper, "most": inside.max()}
