"""Processes that start at once: forked from one that has imported torch and the library, and has done nothing else."""

import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path

SERVER = multiprocessing.get_context("forkserver")
PRELOADED = "ipykernel.kernelapp lib.analysis lib.charts papers papers.results lib.tables"
PRELOADED += " torch._dynamo spacy.lang.en captum.attr matplotlib.colors"  # what these load only where it is used
SERVER.set_forkserver_preload(PRELOADED.split())


class Forked:
    """A process that calls a function; it has what jupyter_client wants of a subprocess.Popen.

    It has the environment and the folder of the process that starts it, and a session of its own.
    """

    stdin = stdout = stderr = None

    def __init__(self, function: Callable, *arguments, log: Path | str = os.devnull):
        started, here = SERVER.Pipe(duplex=False)
        given = here, dict(os.environ), Path.cwd(), str(log), function, arguments
        self.process = SERVER.Process(target=live, args=given)
        self.process.start()
        started.recv()
        self.pid = self.process.pid

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self) -> int:
        self.process.join()
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


def live(started, environment: dict, folder: Path, log: str, function: Callable, arguments: tuple) -> None:
    os.setsid()
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 1)
    sys.stdout.reconfigure(line_buffering=True)
    started.send(None)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    function(*arguments)


def kernel(command: list[str], env: dict, **_) -> Forked:
    """Instead of jupyter_client's own start of a kernel."""
    return Forked(run_module, command, env | {"JPY_PARENT_PID": str(os.getpid())})


def run_module(command: list[str], environment: dict) -> None:
    os.environ.update(environment)
    if core := environment.get("KERNEL_CORE"):  # the only one that it may use: it starts no processes to train in
        os.sched_setaffinity(0, {int(core)})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _, flag, module, *sys.argv[1:] = command
    assert flag == "-m", command
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def highest_memory() -> float:
    """Megabytes that this process alone held at its highest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10
