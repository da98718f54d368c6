"""Ours beside the papers' values and claims: a dot with its interval, a mark for each published value, a band for a
claim's bound."""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from lib.analysis.statistics import over_what
from lib.analysis.verdicts import ANSWERS
from lib.charts.theme import COLORS, INK, SHAPES, WIDTH, Empty, dashed_line, facets, number_tips, series_color, titled
from lib.quantity import columns_of_encoders, describe_encoders, title_of
from papers import TITLES
from papers.claims import CONTRAST, WEAK, counted
from papers.findings import SAYS

OURS = "ours, with 95% interval"
LABELS = 230  # pixels for the names of models
STEP = 20  # from one model to the next
NAMES = 420  # and for those of claims
CELL = 66  # at least, from one dataset to the next: a number with its sign and two marks
COLOR_OF = dict(zip(ANSWERS, (COLORS[number] for number in (2, 1, 0, 4, 5)), strict=True)) | {CONTRAST: INK}
# what a claim says of attention as an explanation
SIDE_COLORS = {"yes": COLORS[2], "no": COLORS[1], "undecided": "#9a9a9a"}
THIN = "\N{THIN SPACE}"
DOUBTS = {"weak witness": "w", "could be chance": "c", "stale": "s"}  # marks of an outlined cell, by a letter
BANDS = {  # of a kind of claim, from its bound: where the effect would be none, or too little
    "direction": lambda bound: (-bound, bound),
    "little": lambda bound: (-bound, bound),
    "at least": lambda bound: (bound, bound),
    "most runs": lambda bound: (0.5, 0.5),
    "trend": lambda bound: (0.0, 0.0),
}


def taus_beside(beside: pd.DataFrame) -> alt.TopLevelMixin:
    """Every mean tau of a table made by papers.published.beside, one panel per pair of measures."""
    taus = beside["quantity"].str.startswith("kendall_tau_") & ~beside["quantity"].str.endswith(("_significant", "_p"))
    title = "Rank correlation of measures, beside the published values"
    see = "1: both measures rank tokens alike; 0: as chance would."
    return values_beside(beside[taus], title, see, "mean Kendall tau-b", shared=True, zero=True)


def performance_beside(beside: pd.DataFrame, baseline: pd.DataFrame) -> alt.TopLevelMixin:
    """F1, accuracy and AUC of a table made by papers.published.beside, one panel each.

    Args:
        baseline: scores of one model without attention, rows of lib.analysis.classification: a dashed line each.
    """
    title = "How well the models classify, beside the published values"
    see = "A model that classifies worse than the papers' would be a poor witness for or against attention. "
    see += f"Dashed: {baseline['encoder'].iloc[0]}."
    lines = dict(zip(baseline["quantity"], baseline["value"], strict=True))
    scores = beside[beside["quantity"].isin(["f1", "accuracy", "auc"])]
    return values_beside(scores, title, see, "percent", percent=True, shared=True, lines=lines)


def values_beside(
    beside: pd.DataFrame,
    title: str,
    see: str,
    axis: str,
    percent: bool = False,
    shared: bool = False,
    zero: bool = False,
    lines: Mapping[str, float] | None = None,
) -> alt.TopLevelMixin:
    """Every quantity of a table made by papers.published.beside, one panel each, a row for each configuration.

    Args:
        axis: the title of the x axis. shared: one scale for all panels, else each has its own.
        zero: the axis holds 0, and every panel has a dashed line there. lines: quantity -> where it has another.
    """
    frame = one_row_per_value(beside)
    series = list(dict.fromkeys([OURS, *frame["series"]]))
    shapes = alt.Scale(domain=series, range=SHAPES[: len(series)])
    color, shape = series_color(series), alt.Shape("series:N", title=None, scale=shapes)
    ticks = alt.Axis(format=".0%" if percent else ".1f", tickCount=4 if shared else 3)
    x = alt.X("value:Q", title=axis, scale=alt.Scale(zero=zero, nice=True), axis=ticks)
    y = alt.Y("model:N", title=None, sort=frame["model"].drop_duplicates().tolist(), axis=alt.Axis(grid=True))
    tips = [alt.Tooltip("model:N"), alt.Tooltip("series:N", title="from")]
    tips += [*number_tips(".3f", "value", "low", "high"), alt.Tooltip("table:N")]
    layers = [alt.Chart().mark_point(filled=True, size=50, opacity=1).encode(x, y, color, shape, tooltip=tips)]
    if frame["low"].notna().any():
        rule = alt.Chart().mark_rule(strokeWidth=2.5, opacity=0.6)
        layers.insert(0, rule.encode(alt.X("low:Q"), alt.X2("high"), y, color))
    if zero:
        layers.insert(0, dashed_line("x", 0))
    if lines:
        frame["dashed"] = frame["quantity"].map({title_of(name): value for name, value in lines.items()})
        layers.insert(0, dashed_line("x", "dashed"))
    two_lines = alt.Header(labelExpr="split(replace(datum.label, ' / ', ' /|'), '|')")
    drawn = facets(frame, layers, "quantity", alt.Step(20), axes=110, header=two_lines)
    drawn = titled(drawn, title, [see, caption(beside)])
    return drawn if shared else drawn.resolve_scale(x="independent")


def one_row_per_value(beside: pd.DataFrame) -> pd.DataFrame:
    """The table in long form: quantity, model, series (ours or a paper), value, low, high, table."""
    if beside[["ours", "theirs"]].notna().sum().sum() == 0:
        raise Empty("nothing to draw: the table has neither values of ours nor published ones")
    others = [name for name in ("dataset", "projection", "variant", "layers") if beside[name].nunique() > 1]
    always = [name for name in ("encoder", "attention") if "variant" not in others or beside[name].nunique() > 1]
    names = [name for name in (*always, *others) if name not in columns_of_encoders(beside)]  # that tell rows apart
    models = [" · ".join(part_of_name(name, str(row[name])) for name in names) or "all" for _, row in beside.iterrows()]
    common = pd.DataFrame({"quantity": beside["quantity"].map(title_of), "model": models})
    ours = common.assign(series=OURS, value=beside["ours"], low=beside["low"], high=beside["high"], table="")
    papers = beside["paper"].map(lambda paper: TITLES.get(paper, paper))
    theirs = common.assign(series=papers, value=beside["theirs"], low=None, high=None, table=beside["table"])
    both = [part.dropna(subset="value").astype({"low": float, "high": float}) for part in (ours, theirs)]
    return pd.concat(both, ignore_index=True).drop_duplicates()


def part_of_name(name: str, value: str) -> str:
    """A value of a column of RUN_COLUMNS as a part of a model's name: "additive", "2 layers"."""
    return counted(int(value), "layer") if name == "layers" and value else title_of(value)


def caption(beside: pd.DataFrame) -> str:
    """Dataset and seeds of what is drawn, and how many of our values have no published partner."""
    parts = [", ".join(title_of(str(name)) for name in beside["dataset"].unique()), describe_encoders(beside)]
    if beside["seeds"].notna().any():
        most = int(beside["seeds"].max())
        mean = "mean over " if most > 1 else ""
        parts.append(f"ours: {mean}{counted(most, 'seed')}, interval over {over_what(most)}")
    alone = int((beside["theirs"].isna() & beside["ours"].notna()).sum())
    parts.append(f"{alone} of ours without a published value" if alone else "")
    return " · ".join(filter(None, parts)) + "."


# --- what the verdicts on a paper's claims rest on


def against_people(points: pd.DataFrame, title: str, see: str, ceiling: float) -> alt.TopLevelMixin:
    """What people marked (x) against what the model uses (y): a panel for each model, a point for each explanation.

    Args:
        points: explanation, encoder, attention, and plausible, faithful with _low and _high of each.
        ceiling: of x, a dashed line.
    """
    if points.empty:
        raise Empty("nothing to draw: nobody marked these texts")
    names = points["explanation"].drop_duplicates().map(title_of).tolist()
    frame = points.assign(
        explanation=points["explanation"].map(title_of),
        model=points["encoder"].map(title_of) + " + " + points["attention"].map(title_of),
    )
    frame["number"] = frame["explanation"].map(names.index) + 1
    x = alt.X("plausible:Q", title="token F1 with people's words", scale=alt.Scale(zero=False, nice=True))
    y = alt.Y("faithful:Q", title="normalised comprehensiveness", scale=alt.Scale(zero=False, nice=True))
    base, ends = alt.Chart(), ("plausible", "faithful")
    tips = ["explanation:N", *number_tips(".3f", *(f"{name}{end}" for name in ends for end in ("", "_low", "_high")))]
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.5, color=COLORS[0])
    layers = [
        bars.encode(alt.X("plausible_low:Q"), y, x2="plausible_high"),
        bars.encode(x, alt.Y("faithful_low:Q"), y2="faithful_high"),
        base.mark_point(filled=True, size=60, opacity=1, color=COLORS[0]).encode(x, y, tooltip=tips),
        base.mark_text(align="left", dx=5, dy=-7, fontSize=11, color=INK).encode(x, y, text="number:N"),
        dashed_line("x", ceiling),
    ]
    numbered = "; ".join(f"{number} {name}" for number, name in enumerate(names, start=1))
    return titled(facets(frame, layers, "model", 320, columns=2), title, [see, numbered])


def effects(found: pd.DataFrame) -> alt.TopLevelMixin:
    """Rows of papers.verdicts, a panel for each claim: effect, 95% interval, single seeds, and the bound as a band.

    Raises:
        Empty: no verdict has an effect.
    """
    known = found[found["effect"].notna()]
    if known.empty:
        raise Empty("nothing to draw: no verdict has an effect")
    words = [word for word in COLOR_OF if word in set(known["verdict"])]
    drawn = [panel(same, words) for _, same in known.groupby("short", sort=False)]
    interval = ", its 95% interval" if known["low"].notna().any() else ""
    see = f"Large: the effect{interval} and its verdict; small: single seeds; band: the bound of the claim."
    weak = "Pale: models that are weak witnesses." if known["witness"].eq(WEAK).any() else ""
    return titled(alt.vconcat(*drawn, spacing=14), "What each verdict rests on", [see, weak])


def panel(same: pd.DataFrame, words: list[str]) -> alt.LayerChart:
    """The effects on one claim, a row for each model; `words`: those of all panels."""
    first = same.iloc[0]
    ends = dict(zip(("start", "end"), BANDS[first["kind"]](first["bound"]), strict=True))
    rows = same[["model", "verdict", "effect", "low", "high", "p"]].assign(pale=same["witness"].eq(WEAK))
    y = alt.Y("model:N", title=None, sort=rows["model"].tolist(), axis=alt.Axis(grid=True, labelLimit=LABELS))
    x = alt.X("effect:Q", title=first["unit"], scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    scale = alt.Scale(domain=words, range=[COLOR_OF[word] for word in words])
    color = alt.Color("verdict:N", title=None, scale=scale)
    marks = ["cross" if word == CONTRAST else "circle" for word in words]
    shape = alt.Shape("verdict:N", title=None, scale=alt.Scale(domain=words, range=marks))
    faint = alt.condition("datum.pale", alt.value(0.35), alt.value(1))
    tips = ["model:N", "verdict:N", *number_tips("+.3f", "effect", "low", "high"), *number_tips(".2g", "p")]
    band, pairs = alt.Chart(pd.DataFrame([ends])), zip(same["model"], same["of_seeds"], strict=True)
    seeds = [{"model": model, "value": float(value)} for model, text in pairs for value in text.split()]
    points = [alt.Chart(pd.DataFrame(seeds)).mark_point(size=16, color=INK, opacity=0.8).encode(alt.X("value:Q"), y)]
    bars = alt.Chart(rows).mark_rule(strokeWidth=2.5).encode(alt.X("low:Q"), alt.X2("high"), y, color, opacity=faint)
    layers = [
        band.mark_rect(color=INK, opacity=0.13).encode(alt.X("start:Q"), alt.X2("end")),
        band.mark_rule(color=INK, strokeDash=[4, 3]).encode(alt.X("end:Q")),
        # of "most runs" a seed says only whether it holds; and an empty layer has no scale
        *([bars] if rows["low"].notna().any() else []),
        *(points if seeds and first["kind"] != "most runs" else []),
        alt.Chart(rows).mark_point(filled=True, size=60).encode(x, y, color, shape, opacity=faint, tooltip=tips),
    ]
    drawn = alt.layer(*layers).properties(width=WIDTH - LABELS, height=alt.Step(STEP))
    return drawn.properties(title=alt.TitleParams(first["short"], fontSize=12, offset=4))


def claims(cells: pd.DataFrame, datasets: Sequence[str]) -> alt.TopLevelMixin:
    """What the claims say of attention as an explanation, by question and dataset.

    Args:
        cells: question (in words), short, dataset, answer (the verdict), side ("for", "against" or ""), shown (the
            effect in digits), size (with interval and unit), unit, marks (what speaks against it), ours (whether the
            paper does not claim it).
        datasets: in the order of their columns.
    """
    rows = cells_in_words(cells)
    words = [word for word in SIDE_COLORS if word in set(rows["says"])]
    color = alt.Color("says:N", title=None, scale=alt.Scale(domain=words, range=[SIDE_COLORS[word] for word in words]))
    width, quiet = min(82, max(CELL, WIDTH / max(1, len(datasets)))), {"domain": False, "ticks": False}
    top = alt.Axis(orient="top", labelAngle=0, labelExpr="split(datum.label, /[-_]/)", offset=30, **quiet)
    apart = alt.Scale(paddingInner=0.1, paddingOuter=0)
    x = alt.X("dataset:N", title=None, sort=list(datasets), axis=top, scale=apart)
    y = alt.Y("short:N", title=None, sort=None, axis=alt.Axis(labelLimit=NAMES, labelPadding=8, **quiet), scale=apart)
    numbers = alt.condition("datum.filled", alt.value("white"), color)
    layers = [
        alt.Chart().mark_rect(filled=False, strokeWidth=1.5).encode(x, y, color),
        alt.Chart().transform_filter("datum.filled").mark_rect().encode(x, y, color, tooltip=list(rows)),
        alt.Chart().mark_text(fontSize=11, fontWeight=600).encode(x, y, alt.Text("shown:N"), color=numbers),
        alt.Chart().mark_text(align="left", dx=6, color=INK).encode(y, alt.Text("unit:N"), x=alt.value("width")),
    ]
    header = alt.Header(labelOrient="top", labelAnchor="start", labelAlign="left", labelPadding=6)
    row = alt.Row("question:N", title=None, sort=rows["question"].drop_duplicates().tolist(), header=header)
    drawn = alt.layer(*layers, data=rows).properties(width=alt.Step(width), height=alt.Step(STEP)).facet(row=row)
    found = set(cells["marks"].explode())
    doubts = ", ".join(f"{letter} {mark}" for mark, letter in DOUBTS.items() if mark in found)
    see = ["Filled: a test that counts. Number: the effect (median over models), in the unit at the right."]
    outlined = f"Outlined: it does not count; {doubts}. " if doubts else ""
    see += [
        f"{outlined}Grey: open, mixed, or small but not 0. –: no verdict, or outside what is claimed. Empty: not run."
    ]
    title = "Is attention explanation? What the tests say, by question and dataset"
    return titled(drawn.resolve_scale(y="independent"), title, see)


def cells_in_words(cells: pd.DataFrame) -> pd.DataFrame:
    """With what a cell of `claims` shows: what it says, the number and its doubts; once a claim its unit.

    A claim that its paper does not make itself is marked as ours.
    """
    rows = cells[["question", "short", "dataset", "answer", "shown", "size"]].assign(
        says=cells["side"].map(SAYS).fillna("undecided"),
        marks=cells["marks"].map(", ".join),
    )
    rows["short"] = rows["short"].mask(cells["ours"].astype(bool), "ours: " + rows["short"])
    rows["filled"] = cells["side"].ne("") & rows["marks"].eq("")
    letters = cells["marks"].map(lambda marks: THIN + "".join(map(DOUBTS.get, marks)) if marks else "")
    rows["shown"] = (rows["shown"] + letters).mask(rows["answer"].isin(["no verdict", CONTRAST]), "–").replace("", "±")
    units = cells["unit"].str.partition(",")[0]
    units = units.mask(units.eq("")).groupby([cells["question"], cells["short"]]).transform("first")
    rows["unit"] = units.fillna("").mask(rows.duplicated(["question", "short"]), "")
    return rows
