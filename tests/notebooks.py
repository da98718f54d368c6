"""Small notebooks for the tests of reports, with everything hostile that a dataset may hold."""

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
RIGHT_TO_LEFT = "\u202eשלום\u202c"
EMOJI = "😀"
CHARTS = 6

PARAMETERS = """\
dataset = "planted"  # the texts
profile = "quick"
seeds: list[int] = []  # empty: as many as the profile says
encoders: list[str] = ["bilstm"]
epsilon: float = 0.01  # nats
draws = 100
keep = False
note = "plain"  # any words
vectors = "auto"  # auto, random, or a file"""

SETUP = f"""\
import altair as alt, pandas as pd, sys
from IPython.display import Markdown, display
from lib import charts
from lib.progress import Progress
from lib.notebook import HEADLINE
charts.enable()
evil = {HOSTILE!r}
words = [evil, {RIGHT_TO_LEFT!r}, {EMOJI!r}, "</script>", "film", "word" * 5000]
frame = pd.DataFrame({{"token": words, evil: words, "weight": [.1, .2, .3, .15, .25, float("nan")]}})"""

BARS = """\
axes = {"x": alt.X("weight:Q", title=evil), "y": alt.Y("token:N", title=evil)}
bars = alt.Chart(frame).mark_bar().encode(**axes, tooltip="token:N")
bars = bars.properties(title=evil, description=evil)
bars"""

LAYERS = """\
words = alt.Chart(frame, title=["Layers", evil]).mark_text().encode(x="weight:Q", text="token:N")
alt.Chart(frame).mark_rule(color="black").encode(x="weight:Q") + words"""

FACETS = """\
many = pd.DataFrame({"row": range(600), "value": range(600)}).assign(part=lambda rows: rows["row"] % 8)
lines = alt.Chart(many, title="Facets").mark_line().encode(x="row:Q", y="value:Q", column="part:N")
display(lines.properties(width=150))
display(bars | bars)
display(alt.Chart(many, title="Points").mark_circle().encode(x="row:Q", y="value:Q", color="part:N"))"""

LOG = """\
with Progress(evil, total=9) as progress:
    for word in range(9):
        progress.write(f"{evil} {note}")
print(evil, note, file=sys.stderr)"""


def save(path: Path, *cells: str, parameters: str = PARAMETERS) -> Path:
    """A notebook of code cells, or of Markdown where a cell starts with "#" or "$", a detail with "###"."""
    nodes = [new_markdown_cell("# A small study\n\n> A claim, in quotation."), new_code_cell(parameters)]
    nodes[1].metadata["tags"] = ["parameters"]
    nodes += [new_markdown_cell(cell) if cell[0] in "#$" else new_code_cell(cell) for cell in cells]
    for node in nodes:
        node.metadata |= {"tags": ["detail"]} if node.source.startswith("###") else {}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=nodes, metadata={"kernelspec": kernel}), path)
    return path


def hostile(folder: Path) -> Path:
    """Six charts, three formulas, and hostile words wherever data may stand."""
    formula = r"$$\tau_b = \frac{P - Q}{\sqrt{(P + Q + X_0)(P + Q + Y_0)}}$$"
    inline = r"Inline $\alpha_t$ and $a < b$."
    return save(
        folder / "hostile.ipynb",
        SETUP,
        f"## A formula\n\n{formula}\n\n{inline}",
        BARS,
        "### A smaller part\n\nIt is folded.",
        LAYERS,
        FACETS,
        LOG,
        "frame",
        "frame.assign(**{f'a long name of column {i}': 1.5 for i in range(20)})",
        "display(Markdown(f'# {evil} {note} $\\\\text{{{evil}}}$'))\nnote",
        "## What we find",
        "from lib import tables\nlines = [f'A finding {evil} {note}', 'Another finding.']",
        "top = {'lines': lines, 'table': tables.html(pd.DataFrame({'finding': lines})), 'chart': bars.to_dict()}\n"
        "display({HEADLINE: top | {'own': False}}, raw=True)",
    )
