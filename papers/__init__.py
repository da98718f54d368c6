"""The papers, a module each: what its notebook trains, what it states (findings.toml), and its published values."""

from importlib import import_module
from pkgutil import iter_modules

from lib.provenance import PROJECT
from papers.paper import Paper
from papers.settings import Settings

_names = [module.name for module in iter_modules(__path__) if (PROJECT / "notebooks" / f"{module.name}.ipynb").exists()]
_papers = [import_module(f"{__name__}.{name}").PAPER for name in _names]
PAPERS: dict[str, Paper] = {paper.name: paper for paper in sorted(_papers, key=lambda one: (one.key[-4:], one.key))}
