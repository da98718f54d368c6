"""The code that computes a quantity, shown from its source, so that a notebook's text cannot drift from it."""

import inspect
from collections.abc import Callable
from html import escape

from IPython.display import Markdown


def show_source(*functions: Callable) -> Markdown:
    """The source of the functions, one below the other, as a highlighted block."""
    code = "\n\n".join(inspect.getsource(function).rstrip() for function in functions)
    return Markdown(f"```python\n{code}\n```")


HEADLINE = "application/vnd.attention.headline+json"


def headline(sentence: str, chart=None) -> None:
    """A finding of this notebook, in one sentence; the report puts it into its first box and into the list of reports.

    Args:
        sentence: computed from what was measured, not typed. May be called several times, with a sentence each.
        chart: an Altair chart to draw, small, in the list of reports.
    """
    from IPython.display import display

    finding = {"sentence": str(sentence), "chart": None if chart is None else chart.to_dict()}
    shown = f"<p class='finding'>{escape(finding['sentence'])}</p>"
    display({HEADLINE: finding, "text/html": shown, "text/plain": finding["sentence"]}, raw=True)
