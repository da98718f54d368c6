"""How a command starts and prints: what it makes is made also where nobody can read what it says."""

import os
import signal
import sys
from pathlib import Path


def start_command() -> None:
    """SIGTERM interrupts as Ctrl-C does, closed standard streams lead nowhere, and folders get full paths."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # else the next file would be a kernel's standard stream
        os.set_inheritable(number, True)
    os.close(number)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(errors="backslashreplace")
    for name in filter(os.environ.get, ("DATA_HOME", "CACHE_HOME", "RESULTS_HOME")):
        os.environ[name] = str(Path(os.path.expanduser(os.environ[name])).resolve())  # noqa: PTH111 - "~nobody" is kept


def say(*lines: str, to: str = "stdout") -> None:
    """Prints lines at once, to stdout or stderr; on a closed pipe or a full disk they are lost, and nothing else is."""
    try:
        print(*(f"{line}\n" for line in lines), sep="", end="", file=getattr(sys, to), flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), getattr(sys, to).fileno())
