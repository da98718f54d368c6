"""python -m tools.report NAME -p key value: run a notebook and write its report."""

import argparse
import sys
from pathlib import Path

from tools.report import parameters as known
from tools.report.parameters import PROJECT, Refused


def arguments(given: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.report", description="Run a notebook and write its report.")
    parser.add_argument("name", nargs="?", help="a notebook in notebooks/, or: index, summary (write them again)")
    parser.add_argument(
        "-p", dest="given", nargs=2, action="append", default=[], metavar=("KEY", "VALUE"),
        help="a parameter of the notebook, as often as needed; a list is written 0,1,2",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="run even when nothing changed since the last time")
    parser.add_argument("--list", action="store_true", help="the notebooks and their parameters")
    parser.add_argument("--output", type=Path, default=PROJECT / "reports", metavar="DIR", help="default: reports/")
    parser.add_argument("--notebooks", type=Path, default=known.NOTEBOOKS, metavar="DIR", help="default: notebooks/")
    read = parser.parse_args(given)
    if not read.name and not read.list:
        parser.error(f"which notebook? known: {', '.join(known.known_notebooks(read.notebooks)) or 'none'}")
    return read


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 made or up to date, 1 the notebook failed, 2 something unknown was asked for, 130 interrupted."""
    read = arguments(given)
    try:
        if read.list:
            tell(read.notebooks)
        elif read.name in ("index", "summary"):
            tell_lists(read.output, read.name)
        else:
            return make(read)
    except Refused as error:
        print(f"{error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; finished training runs are kept", file=sys.stderr)
        return 130
    return 0


def make(read: argparse.Namespace) -> int:
    """Make one report."""
    notebook = known.find_notebook(read.name, read.notebooks)
    values = known.given_parameters(notebook, [tuple(pair) for pair in read.given])
    from tools.report.run import Failed, make_report

    print(f"{known.report_name(notebook, values)}: running {notebook.name}", flush=True)
    try:
        make_report(notebook, values, read.output.resolve(), read.force)
    except Failed as error:
        print(f"{known.report_name(notebook, values)} was not made. {error}", file=sys.stderr)
        return 1
    except OSError as error:
        said = f"{error.filename or read.output}: {error.strerror or error}"
        print(f"{known.report_name(notebook, values)} was not made: nothing could be written. {said}", file=sys.stderr)
        return 1
    return 0


def tell(folder: Path) -> None:
    """Print the notebooks and, of each, the parameters with their defaults."""
    for name in known.known_notebooks(folder):
        print(name)
        for parameter in known.known_parameters(folder / f"{name}.ipynb").values():
            print(f"    -p {parameter.name} {parameter.default!r}    {parameter.help}")


def tell_lists(folder: Path, name: str) -> None:
    """Write the list of reports and their summary again, or the summary alone, and say where they are."""
    from tools.report.index import write_index
    from tools.summary.page import write_summary

    if name == "index":
        print(f"reports: {write_index(folder.resolve())}")
    print(f"summary: {write_summary(folder.resolve())}")


if __name__ == "__main__":
    sys.exit(main())
