"""The arrows of the design: tools on papers on lib, and in lib a module imports only from lower floors."""

import ast
import re
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
# From the ground up. On one line: folders and modules that do not import each other.
FLOORS = [
    "quantity numerics random_streams atomic_write console processes projections progress provenance notebook profiles",
    "metrics",
    "datasets",
    "models",
    "importance interventions",
    "training",
    "analysis",
    "tables",
    "charts",
    "papers",
    "tools",
]
FLOOR = {name: height for height, names in enumerate(FLOORS) for name in names.split()}
MODULES = sorted(chain(*(PROJECT.glob(f"{room}/**/*.py") for room in ("lib", "papers", "tools"))))


def dotted(path: Path) -> str:
    """lib/models/interface.py -> lib.models.interface; a package for its __init__.py."""
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {dotted(path) for path in MODULES}


def imported(path: Path, at_import: bool = False) -> set[str]:
    """The project's modules that a module imports: anywhere in it, or only when it is itself imported."""
    tree, found = ast.parse(path.read_text(encoding="utf-8")), set()
    for node in tree.body if at_import else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & NAMES or {node.module}
    return {name for name in found if name.split(".")[0] in ("lib", "papers", "tools")}


def room(name: str) -> str:
    """What a module may import from freely: lib.models.interface is in models, anything in papers or tools in that."""
    parts = name.split(".")
    return parts[0] if parts[0] != "lib" else parts[1]


@pytest.mark.parametrize("path", [path for path in MODULES if dotted(path) != "lib"], ids=dotted)
def test_a_module_imports_only_from_lower_floors(path):
    own = room(dotted(path))
    above = {name for name in imported(path) if room(name) != own and FLOOR[room(name)] >= FLOOR[own]}
    assert not above, f"{dotted(path)} imports {sorted(above)}, which are not below it"


def test_imports_have_no_circle():
    graph = {dotted(path): imported(path, at_import=True) - {dotted(path)} for path in MODULES}
    inside = {name: {other for other in others if not name.startswith(f"{other}.")} for name, others in graph.items()}
    list(TopologicalSorter(inside).static_order())  # raises CycleError, which names the circle


def test_transformers_is_imported_by_one_module_alone():
    imports = re.compile(r"^\s*(import|from) transformers", re.MULTILINE)
    assert [dotted(path) for path in MODULES if imports.search(path.read_text())] == ["lib.datasets.pretrained"]
