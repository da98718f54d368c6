"""Erased items, drawn: who flips the decision, and how much more the top item matters than another."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from lib.charts.theme import COLORS, INK, WIDTH, said_once, titled
from lib.quantity import title_of

AXES = "columns: erasing another item flips the decision; rows: erasing the top item of a ranking does"
ACROSS = 3  # panels beside each other
BINS = 30  # of either axis
FLIPS = ("does", "does not")
OF_CELL = {"flip_both": (0, 0), "flip_top_only": (0, 1), "flip_random_only": (1, 0), "flip_neither": (1, 1)}


def flip_tables(tables: pd.DataFrame, title: str, see: str) -> alt.TopLevelMixin:
    """A 2 x 2 table of shares for each encoder and ranking: whose erasure flips the decision (Serrano & Smith, fig. 9).

    Args:
        tables: rows of lib.analysis.flip_tables of one way.
    """
    cells = [OF_CELL[name] for name in tables["quantity"]]
    frame = tables[["value", "low", "high", "n"]].assign(
        encoder=[title_of(name) for name in tables["encoder"]],
        ranking=[title_of(name) for name in tables["ranking"]],
        top=[FLIPS[top] for top, _ in cells],
        other=[FLIPS[other] for _, other in cells],
    )
    x = alt.X("other:N", title=None, sort=FLIPS, axis=alt.Axis(labelAngle=0, orient="top", ticks=False, domain=False))
    y = alt.Y("top:N", title=None, sort=FLIPS, axis=alt.Axis(ticks=False, domain=False))
    scale = alt.Scale(domain=[0, 1], range=["#3a86c80a", COLORS[0]])
    color = alt.Color("value:Q", title="share of texts", scale=scale)
    tips = [alt.Tooltip("top:N", title="the top item flips"), alt.Tooltip("other:N", title="another item flips")]
    tips += [alt.Tooltip(f"{name}:Q", format=".1%") for name in ("value", "low", "high")] + [alt.Tooltip("n:Q")]
    base = alt.Chart().encode(x, y, tooltip=tips)
    legend = color.legend(alt.Legend(format="%", gradientLength=120))
    shade = alt.condition("datum.value > 0.6", alt.value("white"), alt.value(INK))
    text = base.mark_text(fontSize=10).encode(alt.Text("value:Q", format=".1%"), color=shade)
    across = frame["encoder"].drop_duplicates().tolist()
    down = frame["ranking"].drop_duplicates().tolist()
    width = min(150, (WIDTH - 190) // len(across) - 8)
    drawn = alt.layer(base.mark_rect().encode(legend), text, data=frame).properties(width=width, height=64)
    drawn = drawn.facet(
        column=alt.Column("encoder:N", title=AXES, sort=across),
        row=alt.Row("ranking:N", title=None, sort=down, header=alt.Header(labelAngle=0, labelAlign="left")),
        spacing={"row": 12, "column": 8},
    )
    return titled(drawn, title, [see, said_once_of(tables)])


def said_once_of(tables: pd.DataFrame) -> str:
    row = tables.iloc[0]
    return f"{row['dataset']}; {int(tables['n'].max()):,} texts of several items at most, {int(row['seeds'])} seed(s)."


def differences(instances: pd.DataFrame, ranking: str, way: str, title: str, see: str) -> alt.TopLevelMixin:
    """Difference of JSD against difference of attention, top item less a drawn one, in bins (Serrano & Smith, fig. 3).

    Args:
        instances: with the columns of lib.interventions.single_erasure, measured under the name "top".
    Raises:
        ValueError: no text has several items.
    """
    columns = {name: instances[f"top_{ranking}_{way}_delta_{name}"] for name in ("alpha", "js")}
    frame = pd.DataFrame(columns).assign(encoder=instances["encoder"]).dropna()
    if frame.empty:
        raise ValueError("nothing to draw: no text has two items or more")
    binned = pd.concat([in_bins(rows, encoder) for encoder, rows in frame.groupby("encoder", sort=False)])
    x = alt.X("alpha:Q", title="difference of attention", axis=alt.Axis(format=".1f", tickCount=5))
    y = alt.Y("js:Q", title="difference of JSD (nats)", axis=alt.Axis(format=".1f", tickCount=5))
    color = alt.Color("texts:Q", title="texts", scale=alt.Scale(type="log", range=["#3a86c833", COLORS[0]]))
    tips = [alt.Tooltip(f"{name}:Q", format=".2f") for name in ("alpha", "alpha_end", "js", "js_end")]
    tips.append(alt.Tooltip("texts:Q", format=","))
    cells = alt.Chart().mark_rect().encode(x, y, color, alt.X2("alpha_end"), alt.Y2("js_end"), tooltip=tips)
    zero = alt.Chart().mark_rule(color=INK, strokeDash=[4, 4]).encode(y=alt.datum(0))
    return titled(wrapped(alt.layer(cells, zero, data=binned), binned, 130), title, [see, f"{said_once(instances)}."])


def in_bins(rows: pd.DataFrame, encoder: str) -> pd.DataFrame:
    """Counts of (alpha, js) in BINS x BINS cells of what occurs; empty cells are left out."""
    edges = [np.linspace(min(0.0, rows[name].min()), max(rows[name].max(), 1e-9), BINS + 1) for name in ("alpha", "js")]
    counts, *_ = np.histogram2d(rows["alpha"], rows["js"], edges)
    i, j = counts.nonzero()
    bounds = {"alpha": edges[0][i], "alpha_end": edges[0][i + 1], "js": edges[1][j], "js_end": edges[1][j + 1]}
    return pd.DataFrame(bounds | {"texts": counts[i, j].astype(int), "encoder": title_of(encoder)})


def negatives(instances: pd.DataFrame, ranking: str, way: str, title: str, see: str) -> alt.TopLevelMixin:
    """How many texts the drawn item changes more than the top one, by difference of attention (fig. 4)."""
    alpha, js = (instances[f"top_{ranking}_{way}_delta_{name}"] for name in ("alpha", "js"))
    edges = np.linspace(-1 if alpha.min() < 0 else 0, 1, 21 if alpha.min() < 0 else 11)
    frames = []
    for encoder, rows in instances.assign(alpha=alpha, negative=js < 0).groupby("encoder", sort=False):
        counts, _ = np.histogram(rows.loc[rows["negative"], "alpha"], edges)
        bounds = {"start": edges[:-1], "end": edges[1:], "texts": counts, "share": counts / rows["alpha"].notna().sum()}
        frames.append(pd.DataFrame(bounds).assign(encoder=title_of(encoder)))
    frame = pd.concat(frames, ignore_index=True)
    x = alt.X("start:Q", bin="binned", title="difference of attention", axis=alt.Axis(format=".1f", tickCount=5))
    y = alt.Y("texts:Q", title="texts")
    tips = [alt.Tooltip("start:Q", title="from", format=".1f"), alt.Tooltip("end:Q", title="to", format=".1f")]
    tips += [alt.Tooltip("texts:Q", format=","), alt.Tooltip("share:Q", title="of all texts", format=".2%")]
    bars = alt.Chart(frame).mark_bar(color=COLORS[0]).encode(x, alt.X2("end"), y, tooltip=tips)
    return titled(wrapped(bars, frame, 90), title, [see, f"{said_once(instances)}."])


def wrapped(drawn: alt.TopLevelMixin, frame: pd.DataFrame, height: int) -> alt.TopLevelMixin:
    """One panel an encoder, ACROSS beside each other."""
    order: Sequence[str] = frame["encoder"].drop_duplicates().tolist()
    beside = min(ACROSS, len(order))
    drawn = drawn.properties(width=min(420, WIDTH // beside - 60), height=height)
    return drawn.facet(facet=alt.Facet("encoder:N", title=None, sort=order), columns=beside)
