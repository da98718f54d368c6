"""One report: a notebook run by papermill, and its page written last, when everything went well."""

import hashlib
import json
import logging
import os
import re
import sys
import time
from contextlib import chdir, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat

from lib.atomic_write import alone, write_text
from lib.progress import spoken
from lib.provenance import commit
from tools.report import parameters as known
from tools.report.index import kept_summary, write_index
from tools.report.page import findings, page, title
from tools.report.parameters import PROJECT
from tools.report.parts import Meter, sections
from tools.summary.page import write_summary

FULL = ("No space left on device", "Disk quota exceeded", "File too large")  # as the system says it


class Failed(RuntimeError):
    """The notebook did not run to its end; the message says where it stopped and what is left."""


def make_report(notebook: Path, values: dict[str, Any], folder: Path, force: bool = False) -> Path:
    """Run `notebook` with `values` and write its page into `folder`; do nothing where that was done already.

    Raises:
        Failed: the notebook stopped; then no page stands in `folder` for it.
    """
    name = known.report_name(notebook, values)
    target, work = folder / f"{name}.html", folder / "work" / name
    work.mkdir(parents=True, exist_ok=True)
    with alone(work / "lock", lambda: print(f"{name}: another process is making it; waiting")):
        mark = fingerprint(notebook, values)
        if not force and is_made_from(target, mark):
            print(f"{name}: up to date ({target}); --force makes it again")
            return target
        try:
            _make(notebook, values, target, work, mark)
        except Exception:
            if target.exists():  # nothing may look finished
                target.replace(work / "earlier.html")
            write_lists(folder)
            raise
    write_lists(folder)
    return target


def is_made_from(page: Path, mark: str) -> bool:
    """Whether a finished report stands there that was made from what has this fingerprint."""
    finished = kept_summary(page)
    return bool(finished) and finished["fingerprint"] == mark


def write_lists(folder: Path) -> None:
    """The list of the reports in `folder`, and what they say together."""
    write_index(folder)
    write_summary(folder)


def _make(notebook: Path, values: dict[str, Any], target: Path, work: Path, mark: str) -> None:
    started, made_from = time.monotonic(), commit()
    meter = Meter(sections(nbformat.read(notebook, as_version=4), injected=bool(values)))
    ran = run_notebook(notebook, values, work, meter)
    told = [vars(parameter) | {"value": values.get(key, parameter.default)}
            for key, parameter in known.known_parameters(notebook).items()]  # fmt: skip
    summary = {
        "file": target.name, "notebook": notebook.stem, "title": title(ran), "fingerprint": mark,
        "dataset": known.dataset_of({entry["name"]: entry["value"] for entry in told}),
        "parameters": {entry["name"]: entry["value"] for entry in told}, "findings": findings(ran), "commit": made_from,
        "changed": [entry["name"] for entry in told if entry["value"] != entry["default"]],
        "versions": f"Python {sys.version.split()[0]}, torch {version('torch')}, altair {version('altair')}",
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "seconds": round(time.monotonic() - started, 1),
    } | meter.told()  # fmt: skip
    write_text(target, page(ran, summary, told))
    print(f"{target.stem}: made in {spoken(summary['seconds'])}: {target}")


def run_notebook(notebook: Path, values: dict[str, Any], work: Path, meter: Meter) -> Any:
    """Run a notebook by papermill, measured by `meter`; the executed notebook and the log lie in `work`.

    Raises:
        Failed: a cell raised an error, or the kernel died. Only papermill's exceptions say so: in the notebook it
            writes "completed" even after the kernel was killed.
    """
    import papermill
    from nbclient.exceptions import DeadKernelError

    from tools.report.engine import ENGINE

    source, ran, log = nbformat.read(notebook, as_version=4), work / notebook.name, work / "run.log"
    ran.unlink(missing_ok=True)
    told = _Teller(source)
    left = f"log: {log}\nnotebook as far as it ran: {ran}"
    with _logged(log, told, meter), _kernel_environment(), meter:
        try:
            return papermill.execute_notebook(
                str(notebook), str(ran), parameters=values, kernel_name="python3", language="python", cwd=str(PROJECT),
                progress_bar=False, log_output=True, stdout_file=told, engine_name=ENGINE,
                extra_arguments=["--log-level=ERROR"],  # of the kernel: no word about its sockets on the terminal
            )  # fmt: skip
        except papermill.PapermillExecutionError as error:
            if error.ename in ("DataError", "ModelError"):
                raise Failed(f"{error.evalue}\n{left}") from error
            if any(said in error.evalue for said in FULL):
                said = f"the disk is full: {told.place} could not write ({_last_line(error.evalue)})"
                raise Failed(f"{said}; make room and run it again, what was finished is kept\n{left}") from error
            raise Failed(f"{told.place} failed: {error.ename}: {_last_line(error.evalue)}\n{left}") from error
        except (DeadKernelError, RuntimeError) as error:
            reason = "the kernel was killed (out of memory?)" if _is_death(error) else _last_line(str(error))
            raise Failed(f"{told.place} failed: {reason}\n{left}") from error


class _Teller:
    """Tells on the terminal where a notebook is and what it prints."""

    def __init__(self, notebook: Any):
        self.heads, head = [], "its beginning"
        for cell in notebook.cells:
            found = re.findall(r"^#+\s+(.+)$", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else []
            head = found[-1] if found else head
            self.heads.append(head)
            if "parameters" in cell.metadata.get("tags", []):
                self.heads.append(head)  # papermill puts the given values into a cell of their own here
        self.place, self._head = "the start", None

    def cell(self, number: int) -> None:
        """Cell `number`, from 1, begins."""
        head = self.heads[min(number, len(self.heads)) - 1]
        self.place = f"cell {number} ({head})"
        if head != self._head:
            print(f"· {head}", flush=True)
        self._head = head

    def write(self, text: str) -> None:
        print("\n".join(f"    {line}" for line in text.rstrip("\n").split("\n")), flush=True)

    def flush(self) -> None:
        sys.stdout.flush()


class _Cells(logging.Handler):
    """Hears in papermill's log which cell begins, and passes it on."""

    def __init__(self, *followers: _Teller | Meter):
        super().__init__()
        self.followers = followers

    def emit(self, record: logging.LogRecord) -> None:
        found = re.match(r"Executing Cell (\d+)", record.getMessage())
        for follower in self.followers if found else ():
            follower.cell(int(found[1]))


@contextmanager
def _logged(path: Path, *followers: _Teller | Meter):
    """papermill's log goes into a file, and only there."""
    logger = logging.getLogger("papermill")
    to_file = logging.FileHandler(path, mode="w", encoding="utf-8")
    to_file.setFormatter(logging.Formatter("%(asctime)s  %(message)s", "%H:%M:%S"))
    to_file.handleError = lambda record: None  # a full disk is told by what cannot do without it
    handlers, before = [to_file, _Cells(*followers)], (logger.level, logger.propagate)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for handler in handlers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            logger.removeHandler(handler)
        to_file.close()
        logger.level, logger.propagate = before


@contextmanager
def _kernel_environment():
    """The kernel is this environment's, imports this project, and reads data where the caller said."""
    before = dict(os.environ)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PROJECT), *filter(None, [before.get("PYTHONPATH")])])
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # or a kernel "python3" of the user's goes before .venv's
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.pop("JPY_SESSION_NAME", None)
    if before.get("DATA_HOME"):
        os.environ["DATA_HOME"] = str(Path(before["DATA_HOME"]).resolve())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def fingerprint(notebook: Path, values: dict[str, Any]) -> str:
    """A hash of all that a report depends on: values, notebook, library, versions and data."""
    digest = hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode())
    folders = (PROJECT / "lib", PROJECT / "tools" / "report")
    library = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".j2", ".css", ".js")]
    fixed = [notebook, PROJECT / "constraints.txt", PROJECT / "requirements.txt", PROJECT / "data" / "published.csv"]
    for path in [*fixed, *sorted(library), *_data_files(notebook, values)]:
        digest.update(path.name.encode() + b"\0")
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    digest.update(f"{sys.version} {version('torch')}".encode())
    return digest.hexdigest()


def _data_files(notebook: Path, values: dict[str, Any]) -> list[Path]:
    """The files of the report's dataset, its word vectors and its model, found as its kernel will find them."""
    from lib.datasets import DataError, files, own, spec, vectors

    told = {name: parameter.default for name, parameter in known.known_parameters(notebook).items()} | values
    home, found = told.get("data_home") or None, []
    with _kernel_environment(), chdir(PROJECT):
        if told.get("model"):
            from lib.training.own_model import located

            found.append(located(told["model"])[0])
        try:
            found += vectors.files_of(told.get("vectors", "auto"), home)
            if told.get("data"):
                return [path.resolve() for path in [*found, *own.find(told["data"], home).values()]]
            folder = spec(told["dataset"]).folder if "dataset" in told else None
            found += sorted(files.find(folder, home).glob("*")) if folder else []
        except DataError:
            pass  # what is missing the notebook itself will say, in its place
        return [path.resolve() for path in found]


def _is_death(error: Exception) -> bool:
    return "Kernel died" in str(error) or type(error).__name__ == "DeadKernelError"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
