"""A store of finished runs: content-addressed, locked while one is made, and never half-written."""

import ast
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

from lib.atomic_write import alone, write_json

PROJECT = Path(__file__).resolve().parents[2]

# Code that cannot change the weights of a run that is hashed with its epochs and the checksum of its splits:
# loaders of datasets, profiles, and what only organises the work.
LEFT_OUT = (
    *("lib.datasets", "lib.profiles", "lib.progress", "lib.training.processes", "lib.training.cache"),
    "lib.training.sharing",
    *("lib.interventions", "lib.fast"),  # of runs that do not name them
)
KEPT = ("lib.datasets.batches", "lib.datasets.corpus")


def home() -> Path:
    """The folder of finished runs: $CACHE_HOME, else data/cache of the project."""
    return Path(os.environ.get("CACHE_HOME") or PROJECT / "data" / "cache")


def digest(value: object) -> str:
    """SHA-256 of a JSON value, whatever the order of its keys: 64 hex digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file: 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _source(module: str) -> Path | None:
    path = PROJECT.joinpath(*module.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
    return tree


@cache
def code_fingerprint(module: str) -> str:
    """Hash of what a module and all it imports from lib *do*: their abstract syntax, no comments, no docstrings.

    LEFT_OUT names what cannot matter. Read once a process, as the modules themselves are.
    """
    waiting, trees = [module], {}
    while waiting:
        name = waiting.pop()
        left_out = name.startswith(LEFT_OUT) and name not in (*KEPT, module)
        path = _source(name) if name.startswith("lib.") and name not in trees and not left_out else None
        if path:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            waiting.extend(_imported(tree))
            trees[name] = ast.dump(_without_docstrings(tree))
    return digest(trees)


def locked(name: str, waiting=lambda: None) -> AbstractContextManager[None]:
    """Holds the lock of one entry; calls `waiting` once if another process holds it. A killed holder frees it."""
    folder = home() / ".locks"
    folder.mkdir(parents=True, exist_ok=True)
    return alone(folder / f"{name}.lock", waiting)


def working_folder(name: str) -> Path:
    """Where an entry is made before it is finished; what a killed run left there is kept for the resume."""
    folder = home() / ".working" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def finish(name: str, working: Path, keep: tuple[str, ...]) -> Path:
    """Makes the working folder the finished entry, in one rename; `keep` names the files that belong to it.

    `contents.json`, written last, holds the digest of each.
    """
    for leftover in working.iterdir():
        if leftover.name not in keep:
            leftover.unlink()
    write_json(working / "contents.json", {file: file_digest(working / file) for file in keep})
    final = home() / name
    shutil.rmtree(final, ignore_errors=True)
    working.rename(final)
    return final


def finished(name: str) -> Path | None:
    """The folder of a finished entry, or None. One whose files do not match their digests counts as not finished."""
    folder = home() / name
    try:
        contents = json.loads((folder / "contents.json").read_text())
        sound = bool(contents) and all(file_digest(folder / file) == expected for file, expected in contents.items())
    except (OSError, ValueError, AttributeError):
        sound = False
    return folder if sound else None
