"""What a notebook shows beside tables and charts, or leaves to its report: source code, findings, kept tables."""

import inspect
from collections.abc import Callable
from textwrap import dedent

from IPython.display import Markdown

# MIME types: of the findings, and of the tables that a notebook leaves to its report
HEADLINE = "application/vnd.attention.headline+json"
LEFT = "application/vnd.attention.tables+json"


def show_source(*functions: Callable) -> Markdown:
    """The source of functions or classes, highlighted, so that a notebook's text cannot drift from the code."""
    code = "\n\n".join(dedent(inspect.getsource(function)).rstrip() for function in functions)
    return Markdown(f"```python\n{code}\n```")
