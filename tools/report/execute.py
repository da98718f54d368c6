"""Runs a notebook by papermill: where it is goes to the terminal, all that it prints into a log."""

import logging
import os
import re
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TextIO

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError

from lib.processes import environment
from tools.report.parameters import PROJECT


class Failed(RuntimeError):
    """The notebook did not run to its end; the message names where it stopped and what is left."""


def run_notebook(notebook: Path, values: dict[str, Any], work: Path) -> Any:
    """Run a notebook by papermill; the executed notebook and the log lie in `work`.

    Raises:
        Failed: a cell raised an error, or the kernel died. Only papermill's exceptions show it: in the notebook it
            writes "completed" even after the kernel was killed.
    """
    ran, log = work / notebook.name, work / "run.log"
    ran.unlink(missing_ok=True)
    left = f"log: {log}\nnotebook as far as it ran: {ran}"
    logging.getLogger("papermill").setLevel(logging.ERROR)
    with log.open("w", encoding="utf-8") as file, kernel_environment():
        tracker = Tracker(file)
        try:
            return papermill.execute_notebook(
                notebook, ran, parameters=values, kernel_name="python3", language="python", cwd=PROJECT,
                progress_bar=False, stdout_file=tracker, stderr_file=file, on_cell_start=tracker.start_cell,
                request_save_on_cell_execute=False,  # or all of it would be written twice for each cell
                extra_arguments=["--log-level=CRITICAL"],  # of the kernel: no traceback of its sockets on the terminal
            )  # fmt: skip
        except papermill.PapermillExecutionError as error:
            reason = f"{tracker.place} failed: {error.ename}: {last_line(error.evalue)}"
            for_reader = error.ename in ("DataError", "ModelError")  # a text that is meant for the reader stays
            raise Failed(f"{error.evalue if for_reader else reason}\n{left}") from error
        except (DeadKernelError, RuntimeError) as error:
            tracker.save(ran)
            died = isinstance(error, DeadKernelError) or "Kernel died" in str(error)
            why = "the kernel was killed (out of memory?)" if died else last_line(str(error))
            raise Failed(f"{tracker.place} failed: {why}\n{left}") from error
        except KeyboardInterrupt:
            logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it would print the interrupted cell's traceback
            tracker.save(ran)
            raise


class Tracker:
    """Follows a running notebook: prints its headings and output, and can save it as far as it ran.

    `place` is where it is, in words: cell 12 (3 Permutation).
    """

    def __init__(self, log: TextIO):
        self.log, self.place, self._heading = log, "the start", "its beginning"
        self._cells: list[Any] = []

    def start_cell(self, cell: Any, cell_index: int) -> None:
        """A cell begins; nbclient calls this also for cells of text."""
        self._cells.append(cell)
        headings = re.findall(r"^#+ +(.+)$", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else []
        if headings:
            self._heading = headings[-1].strip()
            print(f"· {self._heading}", flush=True)
            print(f"{time.strftime('%H:%M:%S')}  {self._heading}", file=self.log, flush=True)
        self.place = f"cell {cell_index + 1} ({self._heading})"

    def save(self, path: Path) -> None:
        """Writes the cells that ran so far."""
        nbformat.write(nbformat.v4.new_notebook(cells=self._cells), path)

    def write(self, text: str) -> None:
        """What the notebook prints: into the log, and indented on the terminal, of a line written over the last."""
        self.log.write(text)
        lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.split("\n")]
        print(*(f"    {line}\n" for line in lines if line), sep="", end="", flush=True)

    def flush(self) -> None:
        """Flushes what was printed."""
        self.log.flush()


def kernel_environment() -> AbstractContextManager:
    """The kernel is this environment's, imports this project, and finds data where the caller's DATA_HOME points."""
    own = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")])),
        "JUPYTER_PREFER_ENV_PATH": "1",  # or a kernel "python3" of the user's goes before .venv's
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "JPY_SESSION_NAME": "",  # no notebook server watches this kernel
    }
    home = os.environ.get("DATA_HOME")
    return environment(own | ({"DATA_HOME": str(Path(home).resolve())} if home else {}))


def last_line(text: str) -> str:
    """The last line with words: of a traceback, the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
