"""Erased items: which of them flips the decision, and how much more the top item matters than another."""

import altair as alt
import numpy as np
import pandas as pd

from lib.charts.theme import COLORS, INK, WIDTH, Empty, caption_of_rows, dashed_line, facets, number_tips, titled
from lib.progress import counted
from lib.quantity import title_of

AXES = "columns: erasing another item flips the decision; rows: erasing the top item of a ranking does"
BINS = 30  # of either axis
FLIPS = ("does", "does not")
CELL_OF = {"flip_both": (0, 0), "flip_top_only": (0, 1), "flip_random_only": (1, 0), "flip_neither": (1, 1)}


def flip_tables(tables: pd.DataFrame, title: str, see: str) -> alt.TopLevelMixin:
    """A 2 x 2 table of shares for each encoder and ranking: whose erasure flips the decision (Serrano & Smith, fig. 9).

    Args:
        tables: rows of lib.analysis.flip_tables of one way.
    """
    cells = [CELL_OF[name] for name in tables["quantity"]]
    frame = tables[["value", "low", "high", "n"]].assign(
        encoder=tables["encoder"].map(title_of),
        ranking=tables["ranking"].map(title_of),
        top=[FLIPS[top] for top, _ in cells],
        other=[FLIPS[other] for _, other in cells],
    )
    x = alt.X("other:N", title=None, sort=FLIPS, axis=alt.Axis(labelAngle=0, orient="top", ticks=False, domain=False))
    y = alt.Y("top:N", title=None, sort=FLIPS, axis=alt.Axis(ticks=False, domain=False))
    tips = [alt.Tooltip("top:N", title="the top item flips"), alt.Tooltip("other:N", title="another item flips")]
    base = alt.Chart().encode(x, y, tooltip=[*tips, *number_tips(".1%", "value", "low", "high"), "n:Q"])
    scale, legend = alt.Scale(domain=[0, 1], range=["#3a86c80a", COLORS[0]]), alt.Legend(format="%", gradientLength=120)
    shade = alt.Color("value:Q", title="share of texts", scale=scale, legend=legend)
    ink = alt.condition("datum.value > 0.6", alt.value("white"), alt.value(INK))
    text = base.mark_text(fontSize=11).encode(alt.Text("value:Q", format=".1%"), color=ink)
    across, down = (frame[name].drop_duplicates().tolist() for name in ("encoder", "ranking"))
    drawn = alt.layer(base.mark_rect().encode(shade), text, data=frame)
    drawn = drawn.properties(width=min(150, (WIDTH - 190) // len(across) - 8), height=64).facet(
        column=alt.Column("encoder:N", title=AXES, sort=across),
        row=alt.Row("ranking:N", title=None, sort=down, header=alt.Header(labelAngle=0, labelAlign="left")),
        spacing={"row": 12, "column": 8},
    )
    first = tables.iloc[0]
    texts, seeds = int(tables["n"].max()), int(first["seeds"])
    note = f"{first['dataset']}; at most {texts:,} texts of two or more items, {counted(seeds, 'seed')}."
    return titled(drawn, title, [see, note])


def differences(instances: pd.DataFrame, ranking: str, way: str, title: str, see: str) -> alt.TopLevelMixin:
    """Difference of JSD against difference of attention, top item less a drawn one, in bins (Serrano & Smith, fig. 3).

    Args:
        instances: with the columns of lib.interventions.single_erasure, measured under the name "top".
    Raises:
        Empty: no text has several items.
    """
    columns = {name: instances[f"top_{ranking}_{way}_delta_{name}"] for name in ("alpha", "js")}
    frame = pd.DataFrame(columns).assign(encoder=instances["encoder"]).dropna()
    if frame.empty:
        raise Empty("nothing to draw: no text has two items or more")
    edges = [around_zero(frame[name]) for name in columns]
    frame = pd.concat([in_bins(rows, encoder, edges) for encoder, rows in frame.groupby("encoder", sort=False)])
    x = alt.X("alpha:Q", title="difference of attention", axis=alt.Axis(format=".1f", tickCount=5))
    y = alt.Y("js:Q", title="difference of JSD (nats)", axis=alt.Axis(format=".1f", tickCount=5))
    color = alt.Color("texts:Q", title="texts", scale=alt.Scale(type="log", range=["#3a86c833", COLORS[0]]))
    tips = [*number_tips(".2f", "alpha", "alpha_end", "js", "js_end"), *number_tips(",", "texts")]
    cells = alt.Chart().mark_rect().encode(x, y, color, alt.X2("alpha_end"), alt.Y2("js_end"), tooltip=tips)
    drawn = facets(frame, [cells, dashed_line("y", 0)], "encoder", height=130)
    return titled(drawn, title, [see, caption_of_rows(instances)])


def in_bins(rows: pd.DataFrame, encoder: str, edges: list[np.ndarray]) -> pd.DataFrame:
    """Counts of (alpha, js) in the cells between the edges; empty ones are left out."""
    counts, *_ = np.histogram2d(rows["alpha"], rows["js"], edges)
    i, j = counts.nonzero()
    bounds = {"alpha": edges[0][i], "alpha_end": edges[0][i + 1], "js": edges[1][j], "js_end": edges[1][j + 1]}
    return pd.DataFrame(bounds | {"texts": counts[i, j].astype(int), "encoder": title_of(encoder)})


def around_zero(values: pd.Series) -> np.ndarray:
    """The edges of at most BINS cells over what occurs, one of them at 0."""
    least, most = min(0.0, values.min()), max(values.max(), 1e-9)
    width = (most - least) / (BINS - 1)
    edges = width * np.arange(np.floor(least / width), np.ceil(most / width) + 1)
    edges[[0, -1]] = min(edges[0], least), max(edges[-1], most)  # whatever the rounding
    return edges


def negatives(instances: pd.DataFrame, ranking: str, way: str, title: str, see: str) -> alt.TopLevelMixin:
    """How many texts the drawn item changes more than the top one, by difference of attention (fig. 4)."""
    alpha, js = (instances[f"top_{ranking}_{way}_delta_{name}"] for name in ("alpha", "js"))
    edges = np.linspace(-1 if alpha.min() < 0 else 0, 1, 21 if alpha.min() < 0 else 11)
    frames = []
    for encoder, rows in instances.assign(alpha=alpha, negative=js < 0).groupby("encoder", sort=False):
        counts, _ = np.histogram(rows.loc[rows["negative"], "alpha"], edges)
        bounds = {"start": edges[:-1], "end": edges[1:], "texts": counts, "share": counts / rows["alpha"].notna().sum()}
        frames.append(pd.DataFrame(bounds).assign(encoder=title_of(encoder)))
    x = alt.X("start:Q", bin="binned", title="difference of attention", axis=alt.Axis(format=".1f", tickCount=5))
    tips = [*number_tips(".1f", start="from", end="to"), *number_tips(",", "texts")]
    tips += number_tips(".2%", share="of all texts")
    bars = alt.Chart().mark_bar(color=COLORS[0]).encode(x, alt.X2("end"), alt.Y("texts:Q", title="texts"), tooltip=tips)
    drawn = facets(pd.concat(frames, ignore_index=True), [bars], "encoder", height=90)
    return titled(drawn, title, [see, caption_of_rows(instances)])
