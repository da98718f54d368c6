"""The plan of a sweep in its folder, plan.json, as the jobs read it."""

import json
from pathlib import Path
from typing import Any

from lib.atomic_write import write_json


def write(folder: Path, made: dict[str, Any]) -> None:
    """Writes the plan whole or not at all, and removes what jobs of earlier plans left there."""
    for name in ("trained", "made", "chosen"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for mark in (folder / name).iterdir():
            mark.unlink()
    write_json(folder / "plan.json", made)


def read(folder: Path) -> dict[str, Any]:
    """The plan in a folder, with the jobs that were added when dev had chosen."""
    found = json.loads((folder / "plan.json").read_text())
    for path in sorted((folder / "chosen").glob("*.json")):
        found["jobs"] |= json.loads(path.read_text())["jobs"]
    return found
