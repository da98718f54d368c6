"""python -m tools.sweep NOTEBOOK ... --datasets sst 20news --seeds 5: many reports, every training and report a job."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lib.progress import spoken
from lib.training.processes import cores
from tools.report import parameters as known
from tools.report.parameters import PROJECT, Refused
from tools.sweep import master, planned
from tools.sweep import plan as plans
from tools.sweep.asked import Asked
from tools.sweep.plan import Work


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.sweep", description="Make many reports, each job once.")
    parser.add_argument("notebooks", nargs="*", help="none: all")
    parser.add_argument("--datasets", nargs="*", default=[], help="none: of each notebook the made-up texts it reads")
    parser.add_argument("--profile", default="quick", help="quick or paper")
    parser.add_argument(
        "--seeds", default="", help="a number of seeds, or the seeds themselves as 0,3; none: profile's"
    )
    parser.add_argument(
        "-p", dest="given", nargs=2, action="append", default=[], metavar=("KEY", "VALUE"),
        help="a parameter of all the notebooks, as often as needed",
    )  # fmt: skip
    parser.add_argument("--on", default="here", help="a folder in profiles/: where jobs run; default: this machine")
    parser.add_argument("--jobs", type=int, default=cores(), help="at a time on this machine; default: its cores")
    parser.add_argument(
        "--bundle", type=float, default=plans.BUNDLE, metavar="SECONDS",
        help="trainings that take less share a job; 0: every training is a job of its own; default: %(default)g",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, default=PROJECT / "reports", metavar="DIR", help="default: reports/")
    parser.add_argument("--trainings", action="store_true", help="train what the reports need, and make none")
    parser.add_argument("--plan", action="store_true", help="say what is left to do and do nothing")
    read = parser.parse_args(given)
    read.output = read.output.resolve()
    return read


def main(given: Sequence[str] | None = None) -> int:
    """Exit code: 0 all made or up to date, 1 something was not, 2 nothing known was asked for, 130 interrupted."""
    read = arguments(given)
    folder = read.output / "work" / "sweep"
    try:
        reports = reports_of(read)
        with master.only_master(folder):
            return sweep(read, reports, folder)
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    except master.Busy as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"nothing could be written: {error.filename or folder}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\ninterrupted; what was finished is kept, and trainings go on from their last checkpoint", file=sys.stderr
        )
        return 130


def reports_of(read: argparse.Namespace) -> list[Asked]:
    """The reports that are asked for; Refused where one of their names or values is unknown to all notebooks."""
    if not (PROJECT / "profiles" / read.on).is_dir():
        places = ", ".join(sorted(path.name for path in (PROJECT / "profiles").iterdir() if path.is_dir()))
        raise Refused(f"--on is {read.on!r}; known: {places}")
    found = []
    for name in read.notebooks or known.known_notebooks():
        notebook = known.find_notebook(name)
        for dataset in read.datasets or [""]:
            pairs = [*([("dataset", dataset)] if dataset else []), ("profile", read.profile), *map(tuple, read.given)]
            pairs += [("seeds", seeds_of(read.seeds))] if read.seeds else []
            found.append(Asked(notebook, known.given_parameters(notebook, pairs)))
    return found


def seeds_of(told: str) -> str:
    """The seeds as a list: "5" is five of them, 0 to 4; "0,3" and "[5]" are those."""
    number = told.strip()
    return str(list(range(int(number)))) if number.isdecimal() and int(number) > 0 else told


def sweep(read: argparse.Namespace, reports: list[Asked], folder: Path) -> int:
    """Plans, says what is left, and does it."""
    works, refused = lacking(read, reports)
    if works:
        told = {report.name: report.told() for report in reports if report.name in works}
        settings = master.project() | {"output": str(read.output), "trainings_only": read.trainings}
        made = plans.plan(works, told, settings, read.bundle)
        tell(made, read.jobs)
        if not read.plan and not is_done(made):
            planned.write(folder, made)
            if not master.run(folder, read.on, read.jobs):
                refused += master.failures(folder)
    return ending(read, refused)


def lacking(read: argparse.Namespace, reports: list[Asked]) -> tuple[dict[str, Work], list[str]]:
    """What each report that is not up to date lacks, by its name, and a sentence for each that cannot be."""
    works, refused, corpora = {}, [], {}
    for report in reports:
        if not read.trainings and report.is_up_to_date(read.output):
            print(f"{report.name}: up to date")
            continue
        try:
            works[report.name] = report.work(corpora)
        except Refused as error:
            refused.append(f"{report.name}: {error}")
    return works, refused


def is_done(made: dict) -> bool:
    """Whether a plan of trainings alone has nothing left to train."""
    return made["trainings_only"] and not made["jobs"] and not any(one["chooses"] for one in made["reports"].values())


def tell(made: dict, jobs: int) -> None:
    """Says what a plan does and about how long it takes."""
    reports = {} if made["trainings_only"] else made["reports"]
    runs = sum(len(job["runs"]) for job in made["jobs"].values())
    later = sum(one["later"] for one in made["reports"].values())
    seconds = sum(one["seconds"] for one in (*made["jobs"].values(), *reports.values())) + later
    more = " and those that wait for a choice on dev" if later else ""
    said = f"to do: {len(reports)} reports, and {runs} trainings{more} in {len(made['jobs'])} jobs"
    print(f"{said}; about {spoken(seconds * made['pace'] / jobs)} with {jobs} at a time", flush=True)


def ending(read: argparse.Namespace, refused: list[str]) -> int:
    """Writes the list of reports, and says what was not made and why."""
    if not read.plan and not read.trainings:
        from tools.report.__main__ import tell_lists

        tell_lists(read.output, "index")
    for sentence in refused:
        print(sentence, file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
