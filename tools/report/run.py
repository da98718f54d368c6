"""One report: a notebook is run, and its page written last, when everything went well."""

import hashlib
import json
import os
import sys
import time
from contextlib import chdir
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lib.atomic_write import alone, write_text
from lib.notebook import HEADLINE
from lib.progress import spoken
from lib.provenance import commit
from papers import PAPERS
from tools.report import parameters
from tools.report.execute import kernel_environment, run_notebook
from tools.report.names import report_name
from tools.report.page import kept_summary, outputs, page, title, write_index
from tools.report.parameters import PROJECT

SHOWN = 3  # findings on the terminal
SOURCES = (".py", ".toml", ".j2", ".css", ".js")


def make_report(notebook: Path, values: dict[str, Any], folder: Path, force: bool = False) -> bool:
    """Run `notebook` with `values`, write its page into `folder`, and index.html; False where that was done already.

    Raises:
        Failed: the notebook stopped; then `folder` has no page of it.
    """
    name = report_name(notebook, values)
    target, work = folder / f"{name}.html", folder / "work" / name
    work.mkdir(parents=True, exist_ok=True)
    with alone(work / "lock", lambda: print(f"{name}: another process is making it; waiting")):
        mark = fingerprint(notebook, values)
        if not force and is_made_from(target, mark):
            print(f"{name}: up to date ({target}); --force makes it again")
            return False
        try:
            _make(notebook, values, target, work, mark)
        except Exception:
            if target.exists():  # nothing may look finished
                target.replace(work / "earlier.html")
            write_index(folder)
            raise
    write_index(folder)
    return True


def _make(notebook: Path, values: dict[str, Any], target: Path, work: Path, mark: str) -> None:
    started, made_from = time.monotonic(), commit()
    ran = run_notebook(notebook, values, work)
    known = [
        entry | {"value": values.get(name, entry["default"])}
        for name, entry in parameters.known_parameters(notebook).items()
    ]
    settings = {entry["name"]: entry["value"] for entry in known}
    model, data = (Path(settings.get(name) or "").name for name in ("model", "data"))
    found = next(iter(outputs(ran, HEADLINE)), {})
    own = " and ".join(filter(None, (model.partition(":")[0], data)))
    summary = {
        "file": target.name,
        "notebook": notebook.stem,
        "title": f"The tests of “{title(ran)}” on {own}" if own else title(ran),
        "paper": PAPERS[notebook.stem].title if notebook.stem in PAPERS else "",
        "fingerprint": mark,
        "dataset": data or str(settings.get("dataset", "")),
        "parameters": settings,
        "changed": [entry["name"] for entry in known if entry["value"] != entry["default"]],
        "findings": found.get("lines", []),
        "commit": made_from,
        "versions": f"Python {sys.version.split()[0]}, torch {version('torch')}, altair {version('altair')}",
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": round(time.monotonic() - started, 1),
    }
    write_text(target, page(ran, summary, known, found))
    print(f"{target.stem}: made in {spoken(summary['seconds'])}: {target}")
    for line in summary["findings"][:SHOWN]:
        print(f"    {line}")
    if (more := len(summary["findings"]) - SHOWN) > 0:
        print(f"    {more} more on the page")


def is_made_from(page: Path, mark: str) -> bool:
    """Whether `page` is a finished report with this fingerprint."""
    return (kept_summary(page) or {}).get("fingerprint") == mark


def fingerprint(notebook: Path, values: dict[str, Any]) -> str:
    """A hash of all that a report depends on: values, notebook, library, versions and data.

    What your own model reads, such as its weights, is not known: its report is made anew each time.
    """
    digest = hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode())
    folders = (PROJECT / "lib", PROJECT / "papers", PROJECT / "tools" / "report")
    library = [path for folder in folders for path in folder.rglob("*") if path.suffix in SOURCES]
    names = ("constraints.txt", "requirements.txt", "data/published.csv", "data/differences.csv")
    fixed = [notebook, *(PROJECT / name for name in names)]
    for path in [*fixed, *sorted(library), *_data_files(notebook, values)]:
        digest.update(path.name.encode() + b"\0")
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    digest.update(f"{sys.version} {version('torch')}".encode() + os.urandom(16 if values.get("model") else 0))
    return digest.hexdigest()


def _data_files(notebook: Path, values: dict[str, Any]) -> list[Path]:
    """The files of the report's dataset, and its word vectors, found as its kernel will find them."""
    from lib.datasets import DataError, files, spec, word_vectors

    settings = parameters.all_values(notebook, values)
    home, found = settings.get("data_home"), []
    with kernel_environment(), chdir(PROJECT):
        try:
            found += word_vectors.files_of(settings.get("vectors", "auto"), home)
            if settings.get("data"):
                return [path.resolve() for path in [*found, files.find_file(settings["data"], home)]]
            folder = spec(settings["dataset"]).folder if "dataset" in settings else None
            found += sorted(files.find(folder, home).glob("*")) if folder else []
        except DataError:
            pass  # the notebook itself reports what is missing
        return [path.resolve() for path in found]
