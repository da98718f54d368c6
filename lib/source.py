"""The code that computes a quantity, shown from its source, so that a notebook's text cannot drift from it."""

import inspect
from collections.abc import Callable

from IPython.display import Markdown


def source(*functions: Callable) -> Markdown:
    """The source of the functions, one below the other, as a highlighted block."""
    code = "\n\n".join(inspect.getsource(function).rstrip() for function in functions)
    return Markdown(f"```python\n{code}\n```")
