"""How a quantity is spread over the texts, for several configurations side by side."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from lib.charts.theme import WIDTH, said_once, titled
from lib.quantity import title_of, unit_of

ACROSS = 3  # panels
LINES = {"90%": "90% of them", "1.5 IQR": "as far as the box is high, 1.5 times"}
SHARES = {"least": 0.05, "lower": 0.25, "median": 0.5, "upper": 0.75, "most": 0.95}


def boxes(
    instances: pd.DataFrame, quantities: Sequence[str], along: str, title: str, see: str, whiskers: str = "90%"
) -> alt.TopLevelMixin:
    """A box for each value of the column `along` and each quantity, one panel an encoder (Meister et al. 2021, fig. 2).

    The box holds the middle half of the texts, the line 90% of them, or with whiskers="1.5 IQR" those at most 1.5 times
    the height of the box away. All seeds together; three panels stand beside each other.

    Args:
        instances: rows of lib.analysis.measure; `along` has texts, drawn in the order in which they come.
    Raises:
        ValueError: no text has a value.
    """
    frames = [
        box_of(rows[quantity], whiskers).assign(
            encoder=title_of(encoder),
            **{along: title_of(at)},
            series=title_of(quantity),
            texts=int(rows[quantity].notna().sum()),
        )
        for quantity in quantities
        for (encoder, at), rows in instances.groupby(["encoder", along], sort=False)
        if rows[quantity].notna().any()
    ]
    if not frames:
        raise ValueError(f"nothing to draw: no text has a value of {', '.join(quantities)}")
    frame = pd.concat(frames, ignore_index=True)
    order, series = list(map(title_of, dict.fromkeys(instances[along]))), [title_of(name) for name in quantities]
    x = alt.X(f"{along}:N", sort=order, title=along, axis=alt.Axis(labelAngle=-45))
    offset = alt.XOffset("series:N", sort=series)
    color = alt.Color("series:N", title=None, sort=series, scale=alt.Scale(domain=series))
    tips = [alt.Tooltip(f"{along}:N"), alt.Tooltip("series:N", title="of")]
    tips += [
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in SHARES),
        alt.Tooltip("texts:Q", title="values", format=","),
    ]
    y = {name: alt.Y(f"{name}:Q", title=unit_of(quantities[0])) for name in ("least", "lower", "median")}
    base = alt.Chart().encode(x, offset, color, tooltip=tips)
    width = alt.RelativeBandSize(0.8)
    layers = [
        base.mark_rule(strokeWidth=1.5).encode(y["least"], alt.Y2("most")),
        base.mark_bar(opacity=0.55, width=width).encode(y["lower"], alt.Y2("upper")),
        base.mark_tick(thickness=2, width=width).encode(y["median"]),
    ]
    encoders = frame["encoder"].drop_duplicates().tolist()
    beside = min(ACROSS, len(encoders))
    drawn = alt.layer(*layers, data=frame).properties(width=WIDTH // beside - 60, height=200 if beside < 3 else 150)
    drawn = drawn.facet(facet=alt.Facet("encoder:N", title=None, sort=encoders), columns=beside)
    return titled(drawn, title, [see, f"Box: half of the texts; line: {LINES[whiskers]}. {said_once(instances)}."])


def box_of(values: pd.Series, whiskers: str) -> pd.DataFrame:
    """One row: least, lower, median, upper and most of the box and its line."""
    box = values.quantile(list(SHARES.values())).set_axis(SHARES)
    if whiskers == "1.5 IQR":
        reach = 1.5 * (box["upper"] - box["lower"])
        inside = values[values.between(box["lower"] - reach, box["upper"] + reach)]
        box["least"], box["most"] = inside.min(), inside.max()
    return box.to_frame().T
