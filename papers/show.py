"""What a reader sees of findings and printed values: a table, a forest plot, the papers' tables with ours beneath."""

import re
from collections.abc import Mapping
from html import escape
from math import nan
from textwrap import wrap

import altair as alt
import numpy as np
import pandas as pd
from IPython.display import HTML, display

from lib import tables
from lib.analysis.summaries import rows_where
from lib.charts.theme import COLORS, INK, Empty, caption_of_rows, or_a_sentence, titled
from lib.models import ATTENTIONS
from lib.notebook import HEADLINE
from lib.provenance import PROJECT
from lib.quantity import RUN_COLUMNS, title_of
from papers import PAPERS
from papers.effects import FINDINGS, Finding
from papers.judge import NO, NONE, OPEN, YES
from papers.published import ANSWERS, KEYS, table

WORD_COLORS = {YES: COLORS[2], NO: COLORS[1], NONE: COLORS[0], OPEN: "#9a9a9a", "": INK}
ANSWER_COLORS = dict(zip(ANSWERS, (COLORS[2], COLORS[0], COLORS[1]), strict=True))
# May the attention of one's own model be shown? The findings that answer it, and what to show by whether both say yes.
FEWEST = 50  # texts of each effect that the answer about one's own model rests on
QUESTIONS = {"As where the model reads": ("J6", "J5c"), "As why it decides": ("J7", "J7b")}
BESIDE = "attention, called where the model reads, with leave-one-out beside it"
SHOWN = {(True, True): "attention", (True, False): BESIDE}  # else LEAVE_ONE_OUT
LEAVE_ONE_OUT = "leave-one-out, what each word changes"
BOX = ("J1", "J4", "J5", "J5c", "J6", "J7", "J7b")
LABEL = 320  # pixels, the most for the names of models; a third for those of datasets
WIDTH = 940  # of a row of panels
NOT_COUNTED = "does not count: we read a part of the training set, or it is printed twice"


# --- findings


def about(found: pd.DataFrame) -> pd.DataFrame:
    """The rows of the models that each finding is about."""
    return found[np.array([FINDINGS[row["finding"]].is_about(row) for row in found.to_dict("records")], dtype=bool)]


def headline(found: pd.DataFrame, own: bool = False) -> None:
    """Displays the findings of the models that each is about, for a report's top; of one's `own`, may it be shown?"""
    rows, answers, above = about(found), [], ""
    rows = found if rows.empty else rows
    if own and len(box := rows[rows["finding"].isin(BOX)]):
        rows = box[box["model"].eq(box["model"].iloc[0])]
        answers, above = may_be_shown(rows)
    elif own:
        own, above = False, "<p>May this attention be shown? A report of correlation answers.</p>"
    shown, drawn = above + findings(rows, not own).data, forest(rows)
    lines = [*answers, *map(in_words, rows.drop_duplicates("finding").to_dict("records"))]
    top = {"lines": lines, "table": shown, "own": own, "chart": None if isinstance(drawn, HTML) else drawn.to_dict()}
    display({HEADLINE: top, "text/html": shown, "text/plain": "\n".join(lines)}, raw=True)


def may_be_shown(found: pd.DataFrame) -> tuple[list[str], str]:
    """*May its attention be shown?* of one model: what to show and two answers; as HTML with numbers and the rule."""
    rows = {row["finding"]: row for row in found.to_dict("records")}
    trained = ", trained here on these texts" if found["attention"].iloc[0] in ATTENTIONS else ""
    lines, yes = {}, []
    for question, names in QUESTIONS.items():
        of = [rows.get(name, {"left_out": "", "n": 0}) for name in names]
        few = [f"only {row['n']} texts have a value; it needs {FEWEST}" for row in of if row["n"] < FEWEST]
        words, left_out = {row.get("word") for row in of}, [row["left_out"] for row in of if row["left_out"]]
        reasons = [f"– {reason}" for reason in (*left_out, *few)]
        answer = YES if words == {YES} else OPEN if words <= {YES, OPEN} else NO
        yes.append(answer == YES and not reasons)
        numbers = "" if reasons else " ".join(f"{in_words(row)} ({row['n']:,} texts)." for row in of)
        lines[f"{question}: {[*reasons, answer][0]}."] = numbers
    model = f"Of {escape(found['model'].iloc[0])}{trained}, runs: {found['runs'].iloc[0]}."
    lines = {f"Show {SHOWN.get(tuple(yes), LEAVE_ONE_OUT)}.": "", **lines}
    shown = "".join(f"<p><b>{escape(answer)}</b> {escape(numbers)}</p>" for answer, numbers in lines.items())
    rule = re.findall(r"^\d\. (.+)", (PROJECT / "docs" / "own-model.md").read_text(encoding="utf-8"), re.MULTILINE)
    return [*lines], f"<p>{model}</p>{shown}<ol>{''.join(f'<li>{escape(line)}</li>' for line in rule)}</ol>"


def findings(found: pd.DataFrame, sources: bool = True) -> HTML:
    """What is stated, of which model (one, in the caption, without `sources`), effect, interval, chance, printed."""
    if found.empty:
        return HTML("<p>No finding was measured.</p>")
    rows = []
    for row in found.to_dict("records"):
        finding = FINDINGS[row["finding"]]
        cells = {"finding": f"{finding.sentence} ({finding.source})" if sources else finding.sentence}
        cells |= {"model": row["model"], "dataset": re.sub("(?<=:).*(?=shortcut)|(?<=[:,])", " ", row["dataset"])}
        cells |= {"measured": measured(row, unit=True), "runs": str(row["runs"])}
        cells |= {"chance": number(row["chance"], finding), "paper": number(printed(row), finding)}
        cells |= {"yes if": side(finding, row["dataset"])}
        rows.append(cells | {"is it so?": f"– {row['left_out']}" if row["left_out"] else row["word"]})
    texts = pd.DataFrame(rows)
    empty = [name for name in ("chance", "paper", "yes if") if texts[name].eq("").all()]
    known = ["dataset"] * (found["dataset"].nunique() == 1) + ["model", "runs"] * (not sources)
    caption = "" if sources else f"{rows[0]['model']}, runs: {rows[0]['runs']}"
    texts = texts.drop(columns=[*empty, *known])
    texts["finding"] = texts["finding"].mask(texts["finding"].eq(texts["finding"].shift()), "")
    return HTML(tables.html(texts, caption, ["measured", "runs", "chance", "paper"]))


def side(finding: Finding, dataset: str) -> str:
    """Where the whole interval lies if the word is yes: above chance, below .25, within ±.02; "" of a level."""
    predicts, edge = finding.predicts_on(dataset), "chance" if finding.beyond_chance else f"{finding.threshold:g}"
    return {"level": "", "within": f"within ±{short(f'{finding.d:g}')}"}.get(predicts, f"{predicts} {short(edge)}")


def in_words(row: Mapping) -> str:
    """What a finding states, and `in_brief`, beside what chance gives where it is about that."""
    finding = FINDINGS[row["finding"]]
    chance = f" (chance {number(row['chance'], finding)})" if finding.beyond_chance else ""
    return f"{finding.sentence}: {in_brief(row, chance)}"


def in_brief(row: Mapping, beside: str = "") -> str:
    """+.15 [+.12, +.18] tau-b, yes: the effect of a row and its word."""
    return ", ".join(filter(None, [measured(row, unit=True) + beside, "" if row["left_out"] else row["word"]]))


def measured(row: Mapping, unit: bool = False) -> str:
    """The effect of a row with its interval, and with its unit, but for a fraction."""
    finding = FINDINGS[row["finding"]]
    effect, low, high = (number(row[name], finding) for name in ("effect", "low", "high"))
    of = f" {finding.unit}" if unit and finding.unit != "fraction" else ""
    return (f"{effect} [{low}, {high}]" if low else effect) + of


def number(value: float, finding: Finding) -> str:
    """A number of a finding: two digits after the point, three below .1; a sign where it is held against about 0."""
    if pd.isna(value):
        return ""
    signed = finding.predicts != "level" and finding.unit != "times" and finding.threshold in (0.0, -0.05, 0.02)
    digits = 2 if abs(value) >= 0.0995 or finding.unit == "times" else 3
    return short(f"{value:{'+' if signed else ''}.{digits}f}")


def short(number: str) -> str:
    """A number without the 0 before its point: .31, −.05, 10.25."""
    return re.sub(r"(?<!\d)0\.", ".", number).replace("-", "−")


def printed(row: Mapping) -> float:
    """The paper's own printed effect for a row; NaN where it prints none."""
    finding, of = FINDINGS[row["finding"]], FINDINGS[row["finding"]].printed
    if not of:
        return nan
    theirs = table(PAPERS[finding.notebook].key, str(row["dataset"]))
    same = {name: str(row[name]) for name in of.get("match", ())}
    parts = [(of["quantity"], of.get("where", {}))]
    if {"less", "less_where"} & set(of):
        parts.append((of.get("less", of["quantity"]), of.get("less_where", {})))
    rows = (rows_where(theirs, {"quantity": quantity} | same | where) for quantity, where in parts)
    first, *less = (float(one["value"].mean()) for one in rows)
    return first - sum(less)


@or_a_sentence
def forest(found: pd.DataFrame, rows: str = "model", columns: int = 1) -> alt.TopLevelMixin:
    """A panel for each finding, `columns` beside each other, a row for each model or dataset: effect and interval."""
    if (found := found[found["left_out"].eq("")]).empty:
        raise Empty("every model is left out, or none was measured")
    width = 480 if rows == "model" else WIDTH // columns - LABEL // 3
    words = [word for word in WORD_COLORS if word in {*found["word"], *found["second_word"]}]
    panels = [panel(same, rows, width, words) for _, same in found.groupby("finding", sort=False)]
    drawn = alt.concat(*panels, columns=columns, spacing=18).resolve_scale(color="shared")
    see = "Point: ours, with its 95% interval. Diamond: the paper's. Grey tick: by chance. Dashed: where yes begins."
    hollow = ["Hollow: from the second word vectors of docs/data.md."] * bool(found["second_effect"].notna().any())
    return titled(drawn, "Do the claims hold?", [see, *hollow])


def panel(same: pd.DataFrame, rows: str, width: int, words: list[str]) -> alt.LayerChart:
    """One finding's rows, `words` the legend; of models "BiLSTM: a", "BiLSTM: b" what differs, own datasets first."""
    finding, parts = FINDINGS[same["finding"].iloc[0]], same["model"].str.partition(": ")
    of = parts[0].iloc[0] if parts[0].nunique() == 1 < parts[2].nunique() else ""
    datasets = " (" + same["dataset"].str.rpartition("=")[2] + ")" if same["dataset"].nunique() > 1 else ""
    same = same.assign(model=same["model"].str.removeprefix(f"{of}: ") + datasets)
    own = same["dataset"].isin(finding.datasets)
    others = ["other data:"] if rows == "dataset" and own.any() and not own.all() else []
    places = list(dict.fromkeys([*same.loc[own, rows], *others, *same[rows]]))
    more = {"word": same["word"].replace("", "measured"), "printed": [*map(printed, same.to_dict("records"))]}
    more["second_word"] = same["second_word"].fillna("").replace("", "measured")
    data = same[["effect", "low", "high", "chance", "runs", "second_effect"]].assign(row=same[rows], **more)
    y = alt.Y("row:N", title=None, scale=alt.Scale(domain=places), axis=alt.Axis(grid=True, labelLimit=LABEL))
    axis = alt.Axis(tickCount=5, title=wrap(f"{finding.quantity} ({finding.unit})", width // 6))
    scale = alt.Scale(type="log", base=2) if finding.unit == "times" else alt.Scale(zero=True)
    x = alt.X("effect:Q", scale=scale, axis=axis)
    scale = alt.Scale(domain=[word or "measured" for word in words], range=[WORD_COLORS[word] for word in words])
    color, second = (alt.Color(f"{name}:N", title=None, scale=scale) for name in ("word", "second_word"))
    tips = ["row:N", "word:N", *(f"{name}:Q" for name in ("runs", "effect", "low", "high", "chance", "printed"))]
    chart = alt.Chart(data).encode(y, tooltip=tips)
    marks = [
        ("chance", chart.mark_tick(color="#8d939c", thickness=2.5, size=15).encode(alt.X("chance:Q"))),
        ("low", chart.mark_rule(strokeWidth=2.5).encode(alt.X("low:Q"), alt.X2("high"), color)),
        ("effect", chart.mark_point(filled=True, size=60, opacity=1).encode(x, color)),
        ("second_effect", chart.mark_point(size=55, opacity=1, yOffset=5).encode(alt.X("second_effect:Q"), second)),
        ("printed", chart.mark_point(shape="diamond", size=90, color=INK, opacity=1).encode(alt.X("printed:Q"))),
    ]
    layers = [mark for column, mark in marks if data[column].notna().any()]
    if finding.predicts != "level" and not finding.beyond_chance:
        within = {*map(finding.predicts_on, same["dataset"])} == {"within"}
        line = alt.Chart(pd.DataFrame({"at": [-finding.d, finding.d] if within else [float(finding.threshold)]}))
        layers.insert(0, line.mark_rule(color=INK, strokeDash=[4, 3]).encode(alt.X("at:Q")))
    title = alt.TitleParams(wrap(f"{finding.sentence}{of and f', {of}'}", width // 7), fontSize=12, offset=4)
    return alt.layer(*layers).properties(width=width, height=alt.Step(17), title=title)


# --- printed beside ours


def compare(values: pd.DataFrame, percent: bool = False, empty: str = tables.NOTHING) -> HTML:
    """The papers' tables, fractions in `percent`, ours beneath each value or alone; the sentence `empty` for none."""
    if values["ours"].isna().all():
        return HTML(f"<p>{escape(empty)}</p>")
    theirs, alone = values[values["theirs"].notna()], values[values["theirs"].isna()]
    parts = [values] if theirs.empty else []
    for _, same in theirs.groupby(["paper", "table"], sort=False):
        ours = alone["encoder"].isin(same["encoder"]) & alone["quantity"].isin(same["quantity"])
        parts.append(pd.concat([same, alone[ours]]))
    return HTML("".join(one_table(part, percent) for part in parts))


def one_table(values: pd.DataFrame, percent: bool) -> str:
    """One table of a paper: a row for each model, a column for each quantity, theirs above ours."""
    first = values.iloc[0]
    by = [name for name in RUN_COLUMNS if values[name].nunique() > 1] or ["dataset"]
    rows = values.assign(cell=[compared_cell(row, percent) for row in values.to_dict("records")]).drop_duplicates(KEYS)
    wide = rows.pivot(index=by, columns="quantity", values="cell").fillna("")
    wide = wide.loc[list(dict.fromkeys(rows.set_index(by).index)), list(dict.fromkeys(rows["quantity"]))].reset_index()
    head = "".join(f"<th scope='col'>{escape(title_of(name))}</th>" for name in wide)
    body = ""
    for _, cells in wide.iterrows():
        body += "<tr>" + "".join(f"<td>{escape(title_of(str(name)))}</td>" for name in cells[by])
        body += "".join(f"<td class='number'>{cell}</td>" for cell in cells.drop(by)) + "</tr>"
    unit = "percent" if percent else ", ".join(dict.fromkeys(values["unit"]))
    caption = f"{caption_of_rows(values.drop(columns=by)).removesuffix('.')} ({unit})."
    if first["paper"]:
        table = re.sub(r"(\d)", r" \1", first["table"], count=1)
        sd = " ± its sd" if values["sd"].notna().any() else ""
        caption = f"{first['source']}, {table}: {caption} Above theirs{sd}, below ours."
    inside = f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<div class='scroll'><table class='beside'>{inside}</table></div>"


def compared_cell(row: Mapping, percent: bool) -> str:
    """Theirs above ours with its interval, in the colour of the answer; grey where the value does not count."""
    scale, digits = (100, 1) if percent and row["unit"] == "fraction" else (1, 3)
    theirs, ours, low, high = (
        "–" if pd.isna(row[name]) else f"{row[name] * scale:.{digits}f}".replace("-", "−")
        for name in ("theirs", "ours", "low", "high")
    )
    ours += "" if pd.isna(row["low"]) or pd.isna(row["ours"]) else f" [{low}, {high}]"
    if pd.isna(row["theirs"]):
        return ours
    theirs += "" if pd.isna(row.get("sd", nan)) else f" ± {row['sd'] * scale:.{digits}f}"
    kind, title = (row["answer"].replace(" ", "-"), row["answer"]) if row["counted"] else ("uncounted", NOT_COUNTED)
    return f"{theirs}<br><span class='{kind}' title='{title}'>{ours}</span>"


@or_a_sentence
def scatter(values: pd.DataFrame) -> alt.TopLevelMixin:
    """Printed (x) against ours (y), a dot for each value that counts, but nats, a panel for each paper."""
    rows = values[values["counted"] & values["difference"].notna() & values["unit"].ne("nats")]
    if rows.empty:
        raise Empty("no printed value has one of ours")
    data = rows[["source", "theirs", "ours", "answer", "dataset", "quantity"]]
    x, y = alt.X("theirs:Q", title="printed"), alt.Y("ours:Q", title="ours")
    scale = alt.Scale(domain=list(ANSWER_COLORS), range=list(ANSWER_COLORS.values()))
    color, tips = alt.Color("answer:N", title=None, scale=scale), [*data.columns[1:]]
    dots = alt.Chart().mark_circle(size=14, opacity=0.6).encode(x, y, color, tooltip=tips)
    numbers = data[["theirs", "ours"]].to_numpy()
    diagonal = alt.Chart().mark_line(color=INK, strokeWidth=1, strokeDash=[3, 3]).encode(alt.X("d0:Q"), alt.Y("d0:Q"))
    diagonal = diagonal.transform_calculate(d0=f"datum.answer == '{ANSWERS[0]}' ? {numbers.min()} : {numbers.max()}")
    both = alt.layer(diagonal, dots, data=data).properties(width=200, height=200)
    drawn = both.facet(alt.Facet("source:N", title=None), columns=4)
    see = "All that count, those in nats left out. On the dashed line they are equal."
    return titled(drawn, "Printed values against ours", [see])
