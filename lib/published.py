"""The papers' printed and released values, beside ours."""

from functools import cache
from html import escape
from pathlib import Path

import pandas as pd
from IPython.display import HTML

from lib.quantity import PAPERS, RUN_COLUMNS, columns_of_encoders, describe_encoders, title_of

KEYS = [*RUN_COLUMNS, "quantity"]
SOURCE = Path(__file__).parent.parent / "data" / "published.csv"
COUNTED = ("instances", "tokens", "words", "sentences", "types", "classes")


@cache
def _published() -> pd.DataFrame:
    frame = pd.read_csv(SOURCE, keep_default_na=False, dtype=str)
    frame["value"] = frame["value"].astype(float)
    frame["sd"] = pd.to_numeric(frame["sd"])  # NaN where none is printed
    return frame


def table(paper: str | None = None, dataset: str | None = None) -> pd.DataFrame:
    """The published values, of one paper and of one dataset where given; none for a dataset that no paper reports.

    Columns: those of data/published.csv; value in `unit`, sd NaN where none is printed, all else text.

    Raises:
        KeyError: unknown paper.
    """
    frame = _published()
    if paper is not None and paper not in PAPERS:
        raise KeyError(f"unknown paper {paper!r}; known: {', '.join(PAPERS)}")
    keep = pd.Series(True, index=frame.index)
    for column, wanted in (("paper", paper), ("dataset", dataset)):
        if wanted is not None:
            keep &= frame[column] == wanted
    return frame[keep].reset_index(drop=True)


def counts(dataset: str) -> pd.DataFrame:
    """What the papers' data tables say about a dataset: paper, table, quantity, value, unit; empty where none does."""
    frame = table(dataset=dataset)
    frame = frame[(frame["encoder"] == "") & frame["unit"].isin(COUNTED)]
    return frame[["paper", "table", "quantity", "value", "unit"]].reset_index(drop=True)


def beside(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Each published value next to ours, by dataset, encoder, attention, projection, variant, layers and quantity.

    A value that stands in two tables or papers has a row for each, with ours repeated. What has no partner on the
    other side is kept with NaN there. Values are compared as they are: no unit is converted.

    Args:
        ours: the columns of lib.analysis.summarise; low and high may be missing.
        theirs: the columns of `table`.
    Returns:
        the keys, unit, ours, low, high, sd_seeds, seeds, paper, table, theirs, difference (ours less theirs), inside
        (whether theirs lies within our interval; missing where there is nothing to compare), note.
    Raises:
        ValueError: a key stands twice in ours, or the units of two partners differ.
    """
    ours, theirs = with_text_keys(ours), with_text_keys(theirs)
    twice = ours[ours.duplicated(KEYS)]
    if len(twice):
        raise ValueError(f"ours has {named(twice.iloc[0])} more than once; summarise it first")
    ours = ours.reindex(columns=[*KEYS, "value", "unit", "low", "high", "sd_seeds", "seeds"])
    theirs = theirs.reindex(columns=[*KEYS, "value", "unit", "paper", "table", "note"])
    places = [frame.assign(place=range(len(frame))) for frame in (ours, theirs)]
    both = places[0].merge(places[1], on=KEYS, how="outer", suffixes=("", "_theirs"))
    both = both.sort_values(
        ["place", "place_theirs"], ignore_index=True
    )  # in the order of ours, then what is theirs alone
    refuse_other_units(both)
    both["unit"] = both["unit"].fillna(both["unit_theirs"])
    both = both.rename(columns={"value": "ours", "value_theirs": "theirs"})
    both["difference"] = both["ours"] - both["theirs"]
    within = (both["low"] <= both["theirs"]) & (both["theirs"] <= both["high"])
    comparable = both[["low", "high", "theirs"]].notna().all(axis=1)
    both["inside"] = within.astype("boolean").where(comparable)
    both[["paper", "table", "note"]] = both[["paper", "table", "note"]].fillna("")
    of_ours, of_theirs = ("ours", "low", "high", "sd_seeds", "seeds"), ("paper", "table", "theirs")
    order = [*KEYS, "unit", *of_ours, *of_theirs, "difference", "inside", "note"]
    return both[order]


def with_text_keys(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with every key as text, "" for a missing one: one layer is "1", not 1 or 1.0."""
    missing = [name for name in (*KEYS, "value", "unit") if name not in frame]
    if missing:
        raise ValueError(f"a table of values needs the columns {', '.join(missing)}; it has {', '.join(frame.columns)}")
    return frame.assign(**{name: [text_key(value) for value in frame[name]] for name in KEYS})


def text_key(value) -> str:
    if pd.isna(value):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def named(row: pd.Series) -> str:
    return " ".join(row[name] for name in KEYS if row[name])


def refuse_other_units(both: pd.DataFrame) -> None:
    """Raises ValueError where two partners are in different units."""
    wrong = both[both["unit"].notna() & both["unit_theirs"].notna() & (both["unit"] != both["unit_theirs"])]
    if len(wrong):
        row = wrong.iloc[0]
        raise ValueError(
            f"{named(row)} is in {row['unit']} here and in {row['unit_theirs']} in {row['paper']} {row['table']} "
            f"({len(wrong)} such rows); both must be in one unit"
        )


def show(beside: pd.DataFrame, percent: bool = False) -> HTML:
    """A table to read: ours with its 95% interval, theirs, the difference; all text from data is escaped.

    What is the same in every row stands once, above the table; without any published value there are no columns for it.
    `percent` shows fractions as percent.
    """
    if beside.empty:
        return HTML("<p>There is nothing to show: no row.</p>")
    beside = beside.reset_index(drop=True)
    several_units = beside["unit"].nunique() > 1 or percent
    rows = pd.DataFrame([shown_row(row, percent, several_units) for _, row in beside.iterrows()])
    constant = [name for name in (*RUN_COLUMNS, "published in") if rows[name].replace("–", None).nunique() <= 1]
    if beside["sd_seeds"].isna().all():
        rows = rows.drop(columns="sd of seeds")
    if beside["theirs"].isna().all():
        rows = rows.drop(columns=["theirs", "difference", "in interval"])
    said = {name: next((text for text in rows[name] if text not in ("", "–")), "") for name in constant}
    said |= {} if several_units else {"unit": beside["unit"].iloc[0]}
    caption = escape(" · ".join(f"{name} {text}" for name, text in said.items() if text))
    caption = " · ".join(filter(None, (caption, escape(describe_encoders(beside)))))
    rows = rows.drop(columns=[*constant, *columns_of_encoders(beside)])
    head = "".join(f'<th scope="col" style="text-align:left">{escape(name)}</th>' for name in rows)
    body = "".join(f"<tr>{''.join(map(cell, rows.columns, row))}</tr>" for row in rows.itertuples(index=False))
    return HTML(
        f'<table class="beside"><caption style="text-align:left">{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def cell(column: str, text: str) -> str:
    """One cell; text from data may break over lines, numbers may not."""
    wraps = column in (*RUN_COLUMNS, "quantity", "published in")
    style = "left" if wraps else "left;white-space:nowrap;font-variant-numeric:tabular-nums"
    style += ";min-width:13em" if column == "quantity" else ""
    return f'<td style="text-align:{style}">{escape(text)}</td>'


def shown_row(row: pd.Series, percent: bool, with_unit: bool) -> dict[str, str]:
    """One row of `show` as text by column."""
    scale, unit, digits = (100, "%", 1) if percent and row["unit"] == "fraction" else (1, row["unit"], 3)

    def number(value: float, sign: str = "") -> str:
        return "–" if pd.isna(value) else f"{value * scale:{sign}.{digits}f}".replace("-", "−")

    return {
        **{name: title_of(str(row[name])) for name in RUN_COLUMNS},
        "quantity": title_of(row["quantity"]) + (f" ({unit})" if with_unit else ""),
        "ours": number(row["ours"]),
        "95% interval": "–" if pd.isna(row["low"]) else f"{number(row['low'])} to {number(row['high'])}",
        "sd of seeds": number(row["sd_seeds"]),
        "theirs": number(row["theirs"]),
        "difference": number(row["difference"], "+"),
        "in interval": "–" if pd.isna(row["inside"]) else "yes" if row["inside"] else "no",
        "published in": f"{PAPERS.get(row['paper'], row['paper'])}, {row['table']}" if row["paper"] else "–",
    }
