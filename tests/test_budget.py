"""How large each room may be: its budget, and until that is reached no more than it was."""

import json
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
COUNTED = (".py", ".toml", ".j2", ".js", ".css")
BUDGET = {"lib": 10_500, "papers": 2_000, "tools": 2_300, "tests": 10_000}  # lines; papers with its table
MOST = {"papers": 2_680}  # of a room beyond its budget, a ratchet: lowered, never raised
SLACK = 100  # lines that a room may be below its ratchet before that is to be lowered


def lines(room: str) -> int:
    """The lines of a room's tracked files, and of the code in its appendix notebooks."""
    ran = subprocess.run(["git", "ls-files", room], cwd=PROJECT, capture_output=True, text=True, check=True)
    paths = [PROJECT / name for name in ran.stdout.split("\n") if name]
    total = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths if path.suffix in COUNTED)
    cells = [cell for path in paths if path.suffix == ".ipynb" for cell in json.loads(path.read_text())["cells"]]
    return total + sum(len(cell["source"]) for cell in cells if cell["cell_type"] == "code")


@pytest.mark.parametrize("room", BUDGET)
def test_no_room_grows_beyond_its_budget_or_what_it_was(room):
    now, most = lines(room), MOST.get(room, BUDGET[room])
    assert now <= most, f"{room} has {now:,} lines; allowed: {most:,}. Take something away"
    assert room not in MOST or now > most - SLACK, f"{room} has {now:,} lines: lower MOST to that"
