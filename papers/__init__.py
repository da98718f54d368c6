"""The papers, a module each: what must be trained, what is claimed, and its published values."""

from importlib import import_module
from pkgutil import iter_modules

from papers.claims import Claim, counted, verdicts
from papers.findings import sentences
from papers.paper import Paper, what_varies
from papers.settings import Settings

_modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
_papers = [module.PAPER for module in _modules if hasattr(module, "PAPER")]
PAPERS: dict[str, Paper] = {paper.name: paper for paper in sorted(_papers, key=lambda one: (one.key[-4:], one.key))}
TITLES = {paper.key: paper.title for paper in PAPERS.values()}
