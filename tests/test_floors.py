"""A module imports only from lower floors, so that one can read the library from the bottom up."""

import ast
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[1] / "lib"
# From the ground up; a floor may have a cellar: what only the modules beside it stand on.
FLOORS = [
    ("0 cellar", "quantity numerics atomic_write projections"),
    ("0", "metrics profiles progress provenance notebook"),
    ("1", "datasets"),
    ("2", "models"),
    ("3", "fast"),
    ("4", "interventions"),
    ("5", "training"),
    ("5 roof", "importance"),
    ("6", "analysis"),
    ("6 roof", "published"),
    ("7 cellar", "papers"),
    ("7 middle", "tables"),
    ("7", "charts"),
    ("7 roof", "results"),
]
FLOOR = {name: height for height, (_, names) in enumerate(FLOORS) for name in names.split()}
MODULES = sorted(path for path in LIBRARY.rglob("*.py") if path != LIBRARY / "__init__.py")


def topic(path: Path) -> str:
    """The file or folder right below lib/ that a module belongs to."""
    return path.relative_to(LIBRARY).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Topics of lib/ that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        assert not any(name.split(".")[0] == "tools" for name in names), f"{path}: tools import lib, never the reverse"
        found |= {name.split(".")[1] for name in names if name.startswith("lib.")}
    return {name for name in found if name in FLOOR or (LIBRARY / f"{name}.py").exists() or (LIBRARY / name).is_dir()}


def test_every_module_has_a_floor():
    assert {topic(path) for path in MODULES} - set(FLOOR) == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_a_module_imports_only_from_lower_floors(path):
    own = topic(path)
    wrong = {name for name in imported(path) - {own} if FLOOR.get(name, -1) >= FLOOR.get(own, 99)}
    assert not wrong, f"lib/{path.relative_to(LIBRARY)} imports {sorted(wrong)}, which do not stand below it"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_a_module_has_at_most_400_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
