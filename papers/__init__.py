"""The papers, a module each: what its notebook trains, what it states (findings.toml), and its published values."""

from importlib import import_module
from pkgutil import iter_modules

from papers.paper import Paper
from papers.published import TITLES
from papers.settings import Settings

_modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
_papers = [module.PAPER for module in _modules if hasattr(module, "PAPER")]
PAPERS: dict[str, Paper] = {paper.name: paper for paper in sorted(_papers, key=lambda one: (one.key[-4:], one.key))}
