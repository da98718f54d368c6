"""What a notebook shows beside tables and charts, or leaves to its report: source code, headlines, kept tables."""

import inspect
from collections.abc import Callable
from html import escape
from textwrap import dedent

from IPython.display import Markdown, display

# MIME types: of a finding, and of the tables that a notebook leaves to its report
HEADLINE = "application/vnd.attention.headline+json"
LEFT = "application/vnd.attention.tables+json"


def show_source(*functions: Callable) -> Markdown:
    """The source of functions or classes, highlighted, so that a notebook's text cannot drift from the code."""
    code = "\n\n".join(dedent(inspect.getsource(function)).rstrip() for function in functions)
    return Markdown(f"```python\n{code}\n```")


def headline(sentence: str, chart=None, place: str = "") -> None:
    """Shows a finding in one sentence, which the report has in its first box and in the list of reports.

    Args:
        sentence: computed from what was measured, not typed; a second finding is a second call.
        chart: an Altair chart to draw, small, in the list of reports; none where it is a sentence instead.
        place: the id of its evidence in the report, to which the first box links; see papers.sentences.
    """
    finding = {"sentence": str(sentence), "place": place}
    finding["chart"] = chart.to_dict() if hasattr(chart, "to_dict") else None
    shown = f"<p>{escape(finding['sentence'])}</p>"
    display({HEADLINE: finding, "text/html": shown, "text/plain": finding["sentence"]}, raw=True)


class Kept(str):
    """What became of a notebook's two tables, in a sentence; as a cell's last line it leaves them to the report."""

    left: dict[str, str]

    def __new__(cls, sentence: str, left: dict[str, str]) -> "Kept":
        made = super().__new__(cls, sentence)
        made.left = left
        return made

    def _repr_mimebundle_(self, **_) -> dict[str, object]:
        return {LEFT: self.left, "text/plain": str(self)}
