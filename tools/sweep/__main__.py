"""python -m tools.sweep NOTEBOOK ... --datasets sst 20news --seeds 5: many reports, every training and report a job."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from lib.datasets.corpus import Corpus
from lib.datasets.own import Own
from lib.processes import cores
from lib.progress import counted, spoken
from tools.report import parameters
from tools.report.__main__ import print_lists
from tools.report.parameters import PROJECT, Refused
from tools.sweep import master
from tools.sweep import plan as plans
from tools.sweep.plan import Report, Work


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.sweep", description="Make many reports, each job once.")
    parser.add_argument("notebooks", nargs="*", help="none: all")
    parser.add_argument("--datasets", nargs="*", default=[], help="none: of each notebook the made-up texts it reads")
    parser.add_argument("--profile", default="quick", help="quick or paper")
    parser.add_argument("--seeds", default="", help="how many seeds, or a list of them as 0,3; none: the profile's")
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
    parser.add_argument("--plan", action="store_true", help="print what is left to do and do nothing")
    options = parser.parse_args(given)
    if options.jobs < 1:
        parser.error(f"--jobs is {options.jobs}; allowed: a whole number from 1 up")
    options.output = options.output.resolve()
    return options


def main(given: Sequence[str] | None = None) -> int:
    """Exit code: 0 all made or up to date, 1 something was not, 2 an unknown name or value, 130 interrupted."""
    options = arguments(given)
    folder = options.output / "work" / "sweep"
    try:
        reports = reports_of(options)
        with nullcontext() if options.plan else master.only_master(folder):
            return sweep(options, reports, folder)
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
        kept = "what was finished is kept, and trainings go on from their last checkpoint"
        print(f"\ninterrupted; {kept}", file=sys.stderr)
        return 130


def reports_of(options: argparse.Namespace) -> list[Report]:
    """The reports of a command line; Refused where a name or a value is unknown."""
    if not (PROJECT / "profiles" / options.on).is_dir():
        places = ", ".join(sorted(path.name for path in (PROJECT / "profiles").iterdir() if path.is_dir()))
        raise Refused(f"--on is {options.on!r}; known: {places}")
    common = [("profile", options.profile), *map(tuple, options.given)]
    common += [("seeds", options.seeds)] if options.seeds else []
    reports = []
    for name in options.notebooks or parameters.known_notebooks():
        notebook = parameters.find_notebook(name)
        for dataset in options.datasets or [""]:
            pairs = [*([("dataset", dataset)] if dataset else []), *common]
            reports.append(Report(notebook, parameters.given_parameters(notebook, pairs)))
    return reports


def sweep(options: argparse.Namespace, reports: list[Report], folder: Path) -> int:
    """Plans, prints what is left, and does it; then what was not made, and why."""
    works, problems = lacking(options, reports)
    if works:
        plan = plans.plan(works, options.output, options.trainings, options.bundle)
        print(in_words(plan, options.jobs), flush=True)
        waiting = plan["jobs"] or any(report["chooses"] for report in plan["reports"].values())
        if not options.plan and (waiting or not options.trainings):
            plans.write(folder, plan)
            if not master.run(folder, options.on, options.jobs):
                problems += master.failures(folder)
    if not options.plan and not options.trainings:
        print_lists(options.output)
    for sentence in problems:
        print(sentence, file=sys.stderr)
    return 1 if problems else 0


def lacking(options: argparse.Namespace, reports: list[Report]) -> tuple[list[tuple[Report, Work]], list[str]]:
    """Each report that is not up to date with what it lacks, and a sentence for each that is impossible."""
    works, problems, corpora = {}, [], {}
    for report in reports:
        if not options.trainings and report.is_up_to_date(options.output):
            print(f"{report.name}: up to date")
            continue
        try:
            works[report.name] = report, report.work(corpora)
        except Refused as error:
            problems.append(f"{report.name}: {error}")
    if options.plan:
        read = [corpus for one in corpora.values() for corpus in one.loaded.values()]
        print(*dict.fromkeys(as_read(corpus) for corpus in read if isinstance(corpus.name, Own)), sep="", end="")
    return list(works.values()), problems


def as_read(corpus: Corpus) -> str:
    """How one's own text was read: its columns, splits and classes, a line each."""
    splits = ", ".join(f"{split.name} {len(split):,} texts" for split in corpus.splits)
    labels = Counter(one.label for split in corpus.splits for one in split.instances)
    classes = ", ".join(f"{name} ({labels[number]:,})" for number, name in enumerate(corpus.classes))
    return "".join(f"{line}\n" for line in (*corpus.notes, f"{splits}; classes: {classes}"))


def in_words(plan: dict, workers: int) -> str:
    """What a plan does and about how long it takes."""
    reports = {} if plan["trainings_only"] else plan["reports"]
    runs = sum(len(job["runs"]) for job in plan["jobs"].values())
    later = sum(one["later"] for one in plan["reports"].values())
    seconds = sum(one["seconds"] for one in (*plan["jobs"].values(), *reports.values())) + later
    more = " and those that wait for a choice on dev" if later else ""
    jobs = f"{counted(runs, 'training')}{more} in {counted(len(plan['jobs']), 'job')}"
    about = f"about {spoken(seconds / workers)} with {workers} at a time"
    return f"to do: {counted(len(reports), 'report')}, and {jobs}; {about}"


if __name__ == "__main__":
    sys.exit(main())
