"""Plants each fault of mutations.toml in a copy of the project and runs its tests (`make mutations`).

Exits with the number of faults that no test caught.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[1]


class Mutation(NamedTuple):
    """A fault: in a file `old`, which is there once, becomes `new`; some of `tests`, files in tests/, then fail."""

    file: str
    old: str
    new: str
    tests: str


def read() -> list[Mutation]:
    """The faults of mutations.toml."""
    groups = tomllib.loads((PROJECT / "tests" / "mutations.toml").read_text(encoding="utf-8"))["mutation"]
    return [Mutation(group["file"], old, new, group["tests"]) for group in groups for old, new in group["faults"]]


def copy_project(folder: Path) -> Path:
    """A copy of the tracked files, with the environment and real data of this project."""
    names = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROJECT / name, folder / name)
    return folder


def is_caught(mutation: Mutation, folder: Path) -> bool:
    """Whether a test fails in a copy of the project with this fault; the copy is then as before."""
    path = folder / mutation.file
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace(mutation.old, mutation.new), encoding="utf-8")
    tests = [f"tests/{name}" for name in mutation.tests.split() if (folder / "tests" / name).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    path.write_text(before, encoding="utf-8")
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not run {mutation.tests}:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return ran.returncode == 1


def main(workers: int = os.cpu_count() or 1) -> int:
    """Prints a line for each fault; returns how many were not caught."""
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(workers) as pool:
        folders: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            folders.put(copy_project(Path(place) / str(number)))

        def check(mutation: Mutation) -> bool:
            folder = folders.get()
            try:
                return is_caught(mutation, folder)
            finally:
                folders.put(folder)

        missed = 0
        for mutation, caught in zip(mutations := read(), pool.map(check, mutations), strict=True):
            missed += not caught
            print("caught" if caught else "MISSED", mutation.file, "|", mutation.new.strip()[:80], flush=True)
    print(f"{len(mutations) - missed} of {len(mutations)} faults are caught")
    return missed


if __name__ == "__main__":
    sys.exit(main())
