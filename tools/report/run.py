"""One report: a notebook is run by papermill, and its page written last, when everything went well."""

import hashlib
import json
import logging
import os
import re
import sys
import time
from contextlib import AbstractContextManager, chdir
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import patch

import papermill
from nbclient.exceptions import DeadKernelError

from lib.atomic_write import alone, write_file
from lib.charts.theme import STATIC
from lib.progress import spoken
from lib.provenance import commit
from papers import PAPERS
from tools.console import say
from tools.report import parameters
from tools.report.page import headline, kept_summary, page, title, write_index
from tools.report.parameters import FILES, PROJECT, literally, report_name

SOURCES = (".py", ".toml", ".j2", ".css", ".js")


def make_report(notebook: Path, values: dict[str, Any], folder: Path) -> bool:
    """Run `notebook` with `values`, write its page into `folder`, and index.html; False where that was done already.

    Raises:
        Failed: the notebook stopped; a page that was there before stays.
    """
    name = report_name(notebook, values)
    target, work = folder / f"{name}.html", folder / "work" / name
    with alone(work / "lock", lambda: say(f"{name}: another process is making it; waiting")):
        mark = fingerprint(notebook, values)
        if is_made_from(target, mark):
            say(f"{name}: up to date; without {target} it is made again")
            return False
        _make(notebook, values, target, work, mark)
        write_index(folder)
        return True


def _make(notebook: Path, values: dict[str, Any], target: Path, work: Path, mark: str) -> None:
    started, made_from = time.monotonic(), commit()
    ran = run_notebook(notebook, values, work)
    known, settings = parameters.known_parameters(notebook), parameters.all_values(notebook, values)
    settings |= {name: Path(settings[name]).name for name in FILES if settings.get(name)}
    known = [entry | {"value": settings[name]} for name, entry in known.items()]
    model, data = (settings.get(name) or "" for name in ("model", "data"))
    found = headline(ran)
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
    if not settings.get("model") and fingerprint(notebook, values) != mark:  # a file changed meanwhile: not up to date
        summary["fingerprint"] = ""
    write_file(target, page(ran, summary, known, found))
    answers = [f"{line}\n" for line in summary["findings"][:3] if found.get("own") and settings.get("model")]
    say(f"{''.join(answers)}{target.stem}: made in {spoken(summary['seconds'])}: {target}")


def is_made_from(page: Path, mark: str) -> bool:
    """Whether `page` is a finished report with this fingerprint."""
    return (kept_summary(page) or {}).get("fingerprint") == mark


def fingerprint(notebook: Path, values: dict[str, Any]) -> str:
    """A hash of what a report depends on, but for kept results: values, notebook, library, versions and data.

    What your own model reads, such as its weights, is not known: its report is made anew each time.
    """
    digest = hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode())
    folders = (PROJECT / "lib", PROJECT / "papers", PROJECT / "tools" / "report")
    library = [path for folder in folders for path in folder.rglob("*") if path.suffix in SOURCES]
    names = ("constraints.txt", "requirements.txt", "data/published.csv", "data/differences.csv")
    for path in [notebook, *(PROJECT / name for name in names), *sorted(library), *_data_files(notebook, values)]:
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


class Failed(RuntimeError):
    """The notebook did not run to its end; the message names where it stopped and what is left."""


def run_notebook(notebook: Path, values: dict[str, Any], work: Path, starts: int = 3) -> Any:
    """Run a notebook by papermill, in at most `starts` starts; the executed notebook and the log lie in `work`.

    Raises:
        Failed: a cell raised an error or ended the notebook, or the kernel died. That only papermill's exceptions show:
            in the notebook it writes "completed" even after the kernel was killed.
    """
    log = work / "run.log"
    for name in ("papermill", "asyncio"):  # an interrupted cell's traceback is not for the terminal
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with log.open("w", encoding="utf-8") as file, kernel_environment():
        tracker = Tracker(file)
        try:
            ran = papermill.execute_notebook(
                literally(notebook), literally(work / notebook.name), parameters=values, kernel_name="python3",
                language="python", cwd=PROJECT, progress_bar=False, stdout_file=tracker, stderr_file=file,
                on_cell_start=tracker.start_cell, request_save_on_cell_execute=False,  # or it is written for each cell
                extra_arguments=["--log-level=CRITICAL"],  # of the kernel: no traceback of its sockets on the terminal
            )  # fmt: skip
            if all(map(is_done, ran.cells)):
                return ran
            reason = f"{tracker.place} failed: it ended the notebook, as sys.exit does"
        except papermill.PapermillExecutionError as error:
            for_reader = error.ename in ("DataError", "ModelError")  # a text that is meant for the reader stays
            reason = error.evalue if for_reader else f"{tracker.place} failed: {error.ename}: {last_line(error.evalue)}"
        except (DeadKernelError, RuntimeError) as error:
            died = isinstance(error, DeadKernelError) or "Kernel died" in str(error)
            if died and tracker.place == "the start" and starts > 1:  # as where another process took one of its ports
                return run_notebook(notebook, values, work, starts - 1)
            why = "its kernel ended: out of memory, killed, or by os._exit" if died else last_line(str(error))
            reason = f"{tracker.place} failed: {why}"
    raise Failed(f"{reason}\nlog: {log}")


class Tracker:
    """Follows a running notebook and prints its headings and output; `place` is where it is: cell 12 (3 Data)."""

    def __init__(self, log: TextIO):
        self.log, self.place, self._heading = log, "the start", "its beginning"

    def start_cell(self, cell: Any, cell_index: int) -> None:
        """A cell begins; nbclient calls this also for cells of text."""
        headings = re.findall(r"^#+ +(.+)$", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else []
        if headings:
            self._heading = headings[-1].strip()
            say(f"· {self._heading}")
            print(f"{time.strftime('%H:%M:%S')}  {self._heading}", file=self.log, flush=True)
        self.place = f"cell {cell_index + 1} ({self._heading})"

    def write(self, text: str) -> None:
        """What the notebook prints: into the log, and indented on the terminal, of a line written over the last."""
        self.log.write(text)
        lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.split("\n")]
        say(*(f"    {line}" for line in lines if line))

    def flush(self) -> None:
        """Flushes what was printed."""
        self.log.flush()


def is_done(cell: Any) -> bool:
    """Whether a cell ran to its end; papermill takes one that leaves by sys.exit(0) for the end of the notebook."""
    if cell.cell_type != "code" or not cell.source.strip():
        return True
    return bool(cell.execution_count) and all(output.output_type != "error" for output in cell.outputs)


def kernel_environment() -> AbstractContextManager:
    """The kernel is this environment's, and imports this project."""
    own = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")])),
        "JUPYTER_PREFER_ENV_PATH": "1",  # or a kernel "python3" of the user's goes before .venv's
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "JPY_SESSION_NAME": "",  # no notebook server watches this kernel
        STATIC: "no",  # the page draws the charts
    }
    return patch.dict(os.environ, own)


def last_line(text: str) -> str:
    """The last line with words: of a traceback, the error."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no message")
