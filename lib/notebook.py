"""What a notebook shows beside tables and charts: source code, and findings for the top of its report."""

import inspect
from collections.abc import Callable
from textwrap import dedent

from IPython.display import Markdown

HEADLINE = "application/vnd.attention.headline+json"  # the MIME type of the findings


def show_source(*functions: Callable) -> Markdown:
    """The source of functions or classes, highlighted, so that a notebook's text cannot drift from the code."""
    code = "\n\n".join(dedent(inspect.getsource(function)).rstrip() for function in functions)
    return Markdown(f"```python\n{code}\n```")
