"""Tables to read: what all rows share is the caption, numbers are rounded, text is escaped; no rows are a sentence."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape

import pandas as pd
from IPython.display import HTML
from pandas.io.formats.style import Styler

from lib.analysis.statistics import FEW
from lib.analysis.summaries import with_class_names
from lib.quantity import RUN_COLUMNS, title_of

NOTHING = "There is nothing to show."
TEXT_STYLE = "text-align: left; vertical-align: top"
NUMBER_STYLE = "text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums"
COLUMN_STYLES = dict.fromkeys(("encoder", "95%"), "white-space: nowrap")
COLUMN_STYLES |= dict.fromkeys(("quantity", "finding"), "min-width: 13em")
SETTINGS = ("lambda", "delta", "eta")  # not measured: shown with all their digits
HIDDEN = ("of_seeds", "se", "se_texts")  # columns for the kept results
NAMES = (*RUN_COLUMNS, "quantity", "ranking", "first", "second")  # columns of names that have a title


def html(texts: pd.DataFrame, caption: str = "", numbers: Collection[str] = ()) -> str:
    """A frame of texts as an HTML table; all is escaped, and `numbers` are columns that are aligned to the right."""
    columns = COLUMN_STYLES | dict.fromkeys(numbers, NUMBER_STYLE)
    styles = [{"selector": "caption, th, td", "props": TEXT_STYLE}]
    styles += [{"selector": f".col{i}", "props": columns[name]} for i, name in enumerate(texts) if name in columns]
    table = Styler(texts, uuid_len=32, cell_ids=False, caption=escape(caption) or None).hide(axis="index")
    table = table.format(escape="html").format_index(escape="html", axis="columns").set_table_styles(styles)
    return table.to_html()


def show(frame: pd.DataFrame, empty: str = NOTHING, index: str = "", digits: int = 3) -> HTML:
    """A table as HTML, or the sentence `empty`; with `index`, a name, the frame's index is the first column.

    digits: of numbers that are not whole; smaller ones keep as many significant digits.
    """
    if frame.empty:
        return HTML(f"<p>{escape(empty)}</p>")
    frame = frame.reset_index(names=index) if index else frame.reset_index(drop=True)
    frame = frame.drop(columns=[name for name in HIDDEN if name in frame])
    texts = frame.apply(lambda column: [format_value(value, column.name, digits) for value in column])
    constant = [name for name in texts if name in (*RUN_COLUMNS, "seeds") and texts[name].nunique() == 1]
    caption = " · ".join(f"{name} {texts[name].iloc[0]}" for name in constant if texts[name].iloc[0])
    texts = texts.drop(columns=constant)
    titles = {name: str(name).replace("_", " ") for name in texts}
    numbers = [title for name, title in titles.items() if pd.api.types.is_numeric_dtype(frame[name])]
    return HTML(html(texts.rename(columns=titles), caption, numbers))


def format_value(value: object, column: str = "", digits: int = 3) -> str:
    """One value for a reader; a dash where there is none."""
    if isinstance(value, str):
        return title_of(value) if column in NAMES else value
    if pd.isna(value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else ""
    if float(value).is_integer():
        return f"{int(value):,}".replace("-", "−")
    if column in SETTINGS:
        return f"{value:g}"
    rounded = f"{value:,.{digits}f}"
    return (f"{value:.{digits}g}" if float(rounded.replace(",", "")) == 0 else rounded).replace("-", "−")


def intervals(low: Iterable[float], high: Iterable[float]) -> list[str]:
    """ "0.123 to 0.456" of each pair of bounds."""
    pairs = zip(low, high, strict=True)
    return ["–" if pd.isna(a) else f"{format_value(a)} to {format_value(b)}" for a, b in pairs]


def sentences(*lines: str) -> HTML:
    """Sentences below each other, small; nothing for none."""
    return HTML("".join(f"<p><small>{escape(line)}</small></p>" for line in lines if line))


def means(
    frame: pd.DataFrame, columns: Mapping[str, str] | None = None, by: Sequence[str] = (), empty: str = NOTHING
) -> HTML:
    """Rows of lib.analysis.summarise: a row a model, a column a quantity, with its 95% interval where it has one.

    columns: quantity, or another column -> title; by default every quantity. by: further columns that tell rows apart.
    """
    if frame["value"].isna().all():
        return show(frame[:0], empty)
    titles = columns or {name: title_of(name) for name in frame["quantity"].unique()}
    frame = frame[frame["quantity"].isin(titles)]
    columns = {name: title for name, title in titles.items() if name in set(frame["quantity"])}
    keys = [*RUN_COLUMNS, *by, "seeds"]
    pairs = zip(frame["value"], intervals(frame["low"], frame["high"]), strict=True)
    cells = frame.assign(cell=[f"{format_value(value)} ({interval})".removesuffix(" (–)") for value, interval in pairs])
    models = cells.pivot(index=keys, columns="quantity", values="cell").reset_index()
    in_order = frame[keys].drop_duplicates().merge(models, on=keys, how="left")
    return show(in_order.reindex(columns=[*keys, *columns]).rename(columns=titles), empty)


def taus(instances: pd.DataFrame, columns: Mapping[str, str], classes: Sequence[str]) -> HTML:
    """Mean ± sd of taus over the texts of each model and predicted class, and how many are significant.

    Jain & Wallace (2019), table 2, of instances of `lib.analysis.correlate`. columns: the title of a tau -> its column,
    or of a number without significance.
    """
    rows, (named, _) = [], with_class_names(instances.sort_values("prediction", kind="stable"), classes)
    for (encoder, attention, name), texts in named.groupby(["encoder", "attention", "class"], sort=False):
        row = {"encoder": encoder, "attention": attention, "predicted class": name}
        for title, column in columns.items():
            mean, sd = (format_value(value, digits=2) for value in (texts[column].mean(), texts[column].std()))
            row |= {title: f"{mean}\u00a0±\u00a0{sd}"}
            if f"{column}_significant" in texts:
                row |= {f"{title}: p ≤ .05": texts[f"{column}_significant"].mean()}
        rows.append(row)
    return show(pd.DataFrame(rows))


def differences(rows: pd.DataFrame) -> HTML:
    """Rows of lib.analysis.against_baseline: the two values, their difference and its interval."""
    if rows.empty:
        return show(rows)
    values = {title_of(rows["quantity"].iloc[0]): rows["first"], "compared with": rows["second"]}
    over = f"95% over {'texts and seeds' if rows['seeds'].max() >= FEW else 'texts'}"
    interval = {over: intervals(rows["low"], rows["high"])}
    models = rows[["encoder", "attention", "projection", "variant", "layers"]]
    return show(models.assign(**values, difference=rows["difference"], **interval))
