"""Erased items: how much more the top item of attention matters than another."""

import altair as alt
import numpy as np
import pandas as pd

from lib.charts.distributions import binned
from lib.charts.theme import COLORS, Empty, caption_of_rows, dashed_line, facets, or_a_sentence, titled
from lib.quantity import title_of

# Of differences of attention, and of JSD: what is above 0 and what is below never share a cell.
EDGES = np.linspace(0, 1, 31), np.arange(-14, 15) / 20


@or_a_sentence
def jsd_differences(instances: pd.DataFrame, title: str, see: str) -> alt.TopLevelMixin:
    """Difference of JSD against that of attention, top item less a drawn one, in bins (Serrano & Smith, figure 3)."""
    rows = top_less_drawn(instances)
    frame = pd.concat(in_bins(of, encoder) for encoder, of in rows.groupby("encoder", sort=False))
    x = alt.X("attention:Q", title="difference of attention", axis=alt.Axis(format=".1f", tickCount=5))
    y = alt.Y("jsd:Q", title="difference of JSD (nats)", axis=alt.Axis(format=".1f", tickCount=5))
    color = alt.Color("texts:Q", title="texts", scale=alt.Scale(type="log", range=["#3a86c833", COLORS[0]]))
    cells = alt.Chart().mark_rect(tooltip=True).encode(x, y, color, alt.X2("attention_end"), alt.Y2("jsd_end"))
    drawn = facets(frame, [cells, dashed_line("y", 0)], "encoder", height=130)
    return titled(drawn, title, [see, caption_of_rows(instances)])


@or_a_sentence
def negative_differences(instances: pd.DataFrame, title: str, see: str) -> alt.TopLevelMixin:
    """How many texts the drawn item changes more than the top one, by difference of attention (their fig. 4)."""
    rows = top_less_drawn(instances)
    by_encoder, edges = rows.groupby("encoder", sort=False), np.linspace(0, 1, 11)
    bins = [binned(of.loc[of["jsd"] < 0, "attention"], edges).assign(encoder=encoder) for encoder, of in by_encoder]
    x = alt.X("start:Q", bin="binned", title="difference of attention", axis=alt.Axis(format=".1f", tickCount=5))
    bars = alt.Chart().mark_bar(color=COLORS[0], tooltip=True).encode(x, alt.X2("end"), alt.Y("texts:Q", title="texts"))
    return titled(facets(pd.concat(bins), [bars], "encoder", height=90), title, [see, caption_of_rows(instances)])


def top_less_drawn(instances: pd.DataFrame) -> pd.DataFrame:
    """encoder, attention and jsd: by how much the top item of a text has more than the drawn one; or raises Empty."""
    columns = {"attention": "top_attention_paper_delta_alpha", "jsd": "top_attention_paper_delta_js"}
    rows = pd.DataFrame({name: instances[column] for name, column in columns.items()})
    rows = rows.assign(encoder=instances["encoder"].map(title_of)).dropna()
    if rows.empty:
        raise Empty("no text has two items or more")
    return rows


def in_bins(rows: pd.DataFrame, encoder: str) -> pd.DataFrame:
    """Counts of (attention, jsd) in the cells between EDGES; empty ones are left out."""
    counts, x, y = np.histogram2d(rows["attention"], rows["jsd"], EDGES)
    i, j = counts.nonzero()
    bounds = {"attention": x[i], "attention_end": x[i + 1], "jsd": y[j], "jsd_end": y[j + 1]}
    return pd.DataFrame(bounds | {"texts": counts[i, j].astype(int), "encoder": encoder})
