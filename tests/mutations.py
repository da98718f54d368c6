"""Plants each fault of mutations.toml, of all files or of those named, in a copy of the project and runs its tests.

`make mutations` plants all. Exits with the number of faults that no test caught.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
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
    kept = tomllib.loads((PROJECT / "tests" / "mutations.toml").read_text(encoding="utf-8"))
    return [Mutation(*fault) for fault in kept["faults"]]


def is_caught(mutation: Mutation) -> bool:
    """Whether a test fails in a copy of the tracked files with this fault."""
    names = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        for name in names.splitlines():
            to = Path(folder, name)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, to)
        path = Path(folder, mutation.file)
        path.write_text(path.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        command += [f"tests/{name}" for name in mutation.tests.split()]
        environment = os.environ | {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not run {mutation.tests}:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return ran.returncode == 1


def main(*files: str) -> int:
    """Prints a line for each fault, of these files or of all; returns how many were not caught."""
    mutations, missed = [one for one in read() if not files or one.file in files], 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        unharmed = [Mutation("README.md", "", "", tests) for tests in sorted({one.tests for one in mutations})]
        if any(pool.map(is_caught, unharmed)):
            raise RuntimeError("some of these tests fail without a fault; make test shows which")
        for mutation, caught in zip(mutations, pool.map(is_caught, mutations), strict=True):
            missed += not caught
            print("caught" if caught else "MISSED", mutation.file, "|", mutation.new.strip()[:80], flush=True)
    print(f"{len(mutations) - missed} of {len(mutations)} faults are caught")
    return missed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
