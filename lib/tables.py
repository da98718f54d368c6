"""Tables to read: what is the same in every row is in the caption, numbers are rounded, text is escaped."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape

import pandas as pd
from IPython.display import HTML
from pandas.io.formats.style import Styler

from lib.analysis.statistics import interval_source
from lib.quantity import RUN_COLUMNS, columns_of_encoders, describe_encoders, title_of

TEXT = "text-align: left; vertical-align: top"
NUMBER = "text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums"
WIDE = {"quantity": "min-width: 13em", **dict.fromkeys(("encoder", "95%"), "white-space: nowrap")}
SETTINGS = ("lambda", "delta", "eta")  # not measured: shown with all their digits
HIDDEN = ("of_seeds", "se", "se_texts")  # columns for the kept results
NAMED = (*RUN_COLUMNS, "quantity")  # columns that hold names of parts of a model or of quantities
CARD = {  # columns of lib.datasets.card, for a reader
    "vocabulary": "words of the vocabulary",
    "with_vector": "of these with a word vector",
    "unknown": "tokens unknown",
    "tokens_with_vector": "tokens with a word vector",
    "again": "texts that occur in train too",
    "other_label": "of these with a different label there",
}
OF_TEXTS, FRACTIONS = ("again", "other_label"), ("with_vector", "unknown", "tokens_with_vector")
MOST_CLASSES = 12  # that a card names


def html(texts: pd.DataFrame, caption: str = "", numbers: Collection[str] = (), styled: bool = True) -> str:
    """A frame of texts as an HTML table, written by pandas' Styler; every text in it is escaped.

    Args:
        numbers: columns that are aligned to the right and not broken into lines; all others are aligned to the left.
        styled: False for a plain table without classes, which keeps a page with many rows small.
    """
    table = Styler(texts, uuid_len=32, cell_ids=False, caption=escape(caption) or None).hide(axis="index")
    table = table.format(escape="html").format_index(escape="html", axis="columns")
    columns = {name: NUMBER if name in numbers else WIDE[name] for name in texts if name in numbers or name in WIDE}
    table.set_table_styles([{"selector": "caption, th, td", "props": TEXT}])
    table.set_table_styles(
        {name: [{"selector": "", "props": props}] for name, props in columns.items()}, overwrite=False
    )
    return table.to_html(exclude_styles=not styled)


def show(frame: pd.DataFrame, empty: str = "There is nothing to show.", index: str = "", digits: int = 3) -> HTML:
    """A table as HTML; the sentence `empty` where it has no rows.

    Args:
        index: a name for the frame's index, to show it as the first column.
        digits: of numbers that are not whole; smaller ones keep as many significant digits.
    """
    frame = frame.reset_index(names=index) if index else frame.reset_index(drop=True)
    frame = frame.drop(columns=[name for name in HIDDEN if name in frame])
    if frame.empty:
        return HTML(f"<p>{escape(empty)}</p>")
    texts = frame.apply(lambda column: [text(value, column.name, digits) for value in column])
    constant = [name for name in texts if name in RUN_COLUMNS and texts[name].nunique() == 1]
    common = [f"{name} {texts[name].iloc[0]}" for name in constant if texts[name].iloc[0]]
    caption = " · ".join(filter(None, [*common, describe_encoders(frame)]))
    texts = texts.drop(columns=[*constant, *columns_of_encoders(frame)])
    titles = {name: str(name).replace("_", " ") for name in texts}
    numbers = [title for name, title in titles.items() if pd.api.types.is_numeric_dtype(frame[name])]
    return HTML(html(texts.rename(columns=titles), caption, numbers))


def text(value: object, column: str, digits: int) -> str:
    """One value for a reader; a dash where there is none."""
    if isinstance(value, str):
        return title_of(value) if column in NAMED else value
    if pd.isna(value):
        return "–"
    if isinstance(value, bool) or float(value).is_integer():
        return f"{value:,}" if isinstance(value, bool) else f"{int(value):,}".replace("-", "−")
    if column in SETTINGS:
        return f"{value:g}"
    rounded = f"{value:,.{digits}f}"
    return (f"{value:.{digits}g}" if float(rounded.replace(",", "")) == 0 else rounded).replace("-", "−")


def card(frame: pd.DataFrame) -> HTML:
    """Rows of lib.datasets.card to read: a column for each split, texts of a kind with their share of the split."""
    frame = few_classes(frame)
    names = [name for name in frame if name not in ("split", "tokens_sd", "sentences_sd")]  # sds go with the means
    splits = {row["split"]: [card_value(name, row) for name in names] for _, row in frame.iterrows()}
    return show(pd.DataFrame({"": [card_title(name) for name in names]} | splits))


def few_classes(frame: pd.DataFrame) -> pd.DataFrame:
    """The card with at most MOST_CLASSES of the classes, those with the most texts of train, and the others as one.

    Where there are more, a class without any text, such as a word that never is an answer, is among the others.
    """
    classes = [name for name in frame if name.startswith("class ")]
    if len(classes) <= MOST_CLASSES:
        return frame
    there = [name for name in classes if frame[name].any()]
    kept = frame[there].iloc[0].astype(int).nlargest(MOST_CLASSES - 1).index
    rest = [name for name in classes if name not in kept]
    others = frame[rest].sum(axis=1)
    frame = frame.drop(columns=rest)
    frame.insert(frame.columns.get_loc("tokens"), f"class: {len(rest):,} others", others)
    return frame


def card_title(name: str) -> str:
    """The title of a card's column: "tokens_max" is "tokens of a text, longest"."""
    unit, _, statistic = name.rpartition("_")
    statistic = {"mean": "mean ± sd", "max": "longest"}.get(statistic, statistic)
    return f"{unit} of a text, {statistic}" if unit in ("tokens", "sentences") else CARD.get(name, name)


def card_value(name: str, row: pd.Series) -> str:
    """One value of a card: a share in percent, texts with their share, a mean with its sd, any other number."""
    if name in FRACTIONS:
        return "–" if pd.isna(row[name]) else f"{row[name]:.1%}"
    if name in OF_TEXTS or name.startswith("class"):
        return f"{row[name]:,} ({row[name] / row['texts']:.1%})"
    sd = f" ± {text(row[name.removesuffix('mean') + 'sd'], name, 1)}" if name.endswith("_mean") else ""
    return text(row[name], name, 1) + sd


def sentences(*lines: str) -> HTML:
    """Sentences below each other, small; nothing for none."""
    return HTML("".join(f"<p><small>{escape(line)}</small></p>" for line in lines if line))


def summary(frame: pd.DataFrame) -> HTML:
    """Rows of lib.analysis.summarise to read: value, 95% intervals, sds, counts."""
    columns = {
        f"95% over {interval_source(frame['seeds'].max())}": intervals(frame["low"], frame["high"]),
        "95% over texts": intervals(frame["low_texts"], frame["high_texts"]),  # of few seeds the same
        "sd of texts": frame["sd_instances"],
        "sd of seeds": frame["sd_seeds"],
    }
    counts = frame[["n", "seeds", "undefined", "left_out"]]
    shown = frame[[*NAMED, "unit", "value"]].assign(**columns, **counts)
    unused = [name for name in ("undefined", "left_out") if not shown[name].any()]
    unused += [name for name in ("sd of texts", "sd of seeds") if shown[name].isna().all()]
    return show(shown.drop(columns=unused))


def wide(frame: pd.DataFrame, columns: Mapping[str, str], by: Sequence[str] = ()) -> HTML:
    """Rows of lib.analysis.summarise, a column for each quantity with its 95% interval over texts and seeds.

    Args:
        columns: quantity -> the column's title. by: further columns that tell the rows apart.
    """
    keys = [*RUN_COLUMNS, *by, "seeds"]
    frame = frame[frame["quantity"].isin(columns)]
    if frame.empty:
        return show(frame)
    pairs = zip(frame["value"], intervals(frame["low"], frame["high"]), strict=True)
    cells = [f"{text(value, '', 3)} ({interval})" for value, interval in pairs]
    pivot = frame.assign(cell=cells).pivot(index=keys, columns="quantity", values="cell").reset_index()
    order = frame[keys].drop_duplicates().merge(pivot, on=keys, how="left")
    return show(order[[*keys, *columns]].rename(columns=columns))


def scores(frame: pd.DataFrame) -> HTML:
    """Rows of lib.analysis.classification of one model without a seed: each score with its interval over texts."""
    frame = frame[frame["value"].notna()]
    interval = {"95% over texts": intervals(frame["low"], frame["high"]), "texts": frame["n"]}
    return show(frame[["quantity", "value"]].assign(**interval))


def difference(rows: pd.DataFrame, over: str = "") -> pd.DataFrame:
    """Rows of lib.analysis.difference as columns to read: the two values, their difference and its interval.

    Args:
        over: what the interval is over; by default as `interval_source` says.
    """
    parts = ("encoder", "attention", "projection", "variant", "against", "layers", "quantity")
    named = [name for name in parts if name in rows]
    values = {"value": rows["first"], "compared with": rows["second"], "difference": rows["difference"]}
    over = over or interval_source(rows["seeds"].max())
    interval = {f"95% over {over}": intervals(rows["low"], rows["high"]), "it is": rows["word"]}
    return rows[named].assign(**values, **interval)


def intervals(low: Iterable[float], high: Iterable[float]) -> list[str]:
    """ "0.123 to 0.456" of each pair of bounds."""
    pairs = zip(low, high, strict=True)
    return ["–" if pd.isna(a) else f"{text(a, '', 3)} to {text(b, '', 3)}" for a, b in pairs]
