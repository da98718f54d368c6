"""python -m tools.report NAME -p key value: run a notebook and write its report."""

import argparse
import sys
from pathlib import Path

from tools.console import say, start_command
from tools.report import parameters
from tools.report.parameters import NOTEBOOKS, PROJECT, Refused, report_name


def arguments(given: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.report", description="Run a notebook and write its report.")
    parser.add_argument("name", nargs="?", help="a notebook in notebooks/")
    parser.add_argument(
        "-p", dest="given", nargs=2, action="append", default=[], metavar=("KEY", "VALUE"),
        help="a parameter of the notebook, as often as needed; a list is written 0,1,2",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="the notebooks and their parameters")
    parser.add_argument("--output", type=Path, default=PROJECT / "reports", metavar="DIR", help="default: reports/")
    parser.add_argument("--notebooks", type=Path, default=NOTEBOOKS, metavar="DIR", help="default: notebooks/")
    options = parser.parse_args(given)
    options.output = options.output.resolve()
    if not options.name and not options.list:
        known = ", ".join(parameters.known_notebooks(options.notebooks)) or "none"
        parser.error(f"which notebook? known: {known}")
    return options


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 made or up to date, 1 the notebook failed, 2 an unknown name or value, 130 interrupted."""
    try:
        options = arguments(given)
        if options.list:
            print_parameters(options.notebooks)
            return 0
        return make(options)
    except Refused as error:
        say(str(error), to="stderr")
        return 2
    except KeyboardInterrupt:
        say("\ninterrupted; finished training runs are kept", to="stderr")
        return 130


def make(options: argparse.Namespace) -> int:
    """Make one report, and the lists of all."""
    notebook = parameters.find_notebook(options.name, options.notebooks)
    values = parameters.given_parameters(notebook, [tuple(pair) for pair in options.given])
    name = report_name(notebook, values)
    from tools.report.run import Failed, make_report  # not imported for --list and refusals: torch takes seconds
    from tools.summary.page import write_summary

    say(f"{name}: running {notebook.name}")
    try:
        make_report(notebook, values, options.output)
        write_summary(options.output)
    except Failed as error:
        say(f"{name}: {error}", to="stderr")
        return 1
    except OSError as error:
        path = error.filename2 or error.filename or options.output
        say(f"{name}: {path} cannot be written: {error.strerror or error}", to="stderr")
        return 1
    return 0


def print_parameters(folder: Path) -> None:
    """Print the notebooks and, of each, the parameters with their defaults."""
    for name in parameters.known_notebooks(folder):
        known = parameters.known_parameters(folder / f"{name}.ipynb").values()
        say(name, *("    -p {name} {default!r}    {help}".format(**entry) for entry in known))


if __name__ == "__main__":
    start_command()
    sys.exit(main())
