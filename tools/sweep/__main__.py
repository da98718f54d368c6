"""python -m tools.sweep NOTEBOOK ... --datasets sst 20news --seeds 5: many reports, as jobs."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from joblib import cpu_count

from lib.atomic_write import alone
from lib.datasets import Own
from lib.processes import gpu_runs, whole
from lib.progress import counted
from lib.training import cache
from lib.training.trained import Corpora
from tools.console import start_command
from tools.report.page import write_index
from tools.report.parameters import PROJECT, Refused, find_notebook, given_parameters, known_notebooks
from tools.report.run import fingerprint, is_made_from
from tools.summary.page import write_summary
from tools.sweep.plan import Report, failures, plan, run


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.sweep", description="Make many reports, each job once.")
    parser.add_argument("notebooks", nargs="*", help="none: all")
    parser.add_argument("--datasets", nargs="*", default=[], help="none: of each notebook the made-up texts it reads")
    parser.add_argument("--profile", default="quick", help="quick or paper")
    parser.add_argument("--seeds", default="", help="how many seeds, or a list of them as 0,3; none: the profile's")
    parser.add_argument(
        "-p", dest="given", nargs=2, action="append", default=[], metavar=("KEY", "VALUE"), help="a parameter of all"
    )
    places = sorted(path.name for path in (PROJECT / "profiles").iterdir() if path.is_dir())
    parser.add_argument("--on", default="here", choices=places, help="where jobs run, of profiles/; default: here")
    parser.add_argument("--jobs", default=str(cpu_count()), help="at a time on this machine; default: its cores")
    parser.add_argument("--output", type=Path, default=PROJECT / "reports", metavar="DIR", help="default: reports/")
    parser.add_argument("--trainings", action="store_true", help="train what the reports need, and make none")
    parser.add_argument("--plan", action="store_true", help="print what is left to do and do nothing")
    options = parser.parse_args(given)
    try:
        options.jobs, _ = whole(options.jobs, "--jobs"), gpu_runs()
    except ValueError as error:
        parser.error(str(error))
    options.output = options.output.resolve()
    return options


def main(given: Sequence[str] | None = None) -> int:
    """Exit code: 0 all made or up to date, 1 something was not, 2 the command is refused, 130 interrupted."""
    options = arguments(given)
    folder = options.output / "work" / "sweep"

    def refuse():
        raise Refused(f"another sweep is at work in {folder}; wait until it ends, or stop it")

    try:
        reports = reports_of(options)
        with nullcontext() if options.plan else alone(folder / "master.lock", refuse):
            return sweep(options, reports, folder)
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"nothing could be written: {error.filename or folder}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; what was finished is kept, and trainings go on from there", file=sys.stderr)
        return 130


def reports_of(options: argparse.Namespace) -> list[Report]:
    """The reports of a command line; Refused where a name or a value is unknown."""
    common = [("profile", options.profile), *map(tuple, options.given)]
    common += [("seeds", options.seeds)] if options.seeds else []
    datasets = [[("dataset", name)] for name in options.datasets] or [[]]
    notebooks = map(find_notebook, options.notebooks or known_notebooks())
    return [Report(one, given_parameters(one, [*dataset, *common])) for one in notebooks for dataset in datasets]


def sweep(options: argparse.Namespace, reports: list[Report], folder: Path) -> int:
    """Plans, prints what is left, and does it; then what was not made, and why."""
    lacking, problems, corpora = [], [], Corpora(reports[0].settings.get("data_home"))
    for report in reports:
        page = options.output / f"{report.name}.html"
        if not options.trainings and is_made_from(page, fingerprint(report.notebook, report.values)):
            print(f"{report.name}: up to date")
            continue
        try:
            missing = {name: run for name, run in report.runs(corpora).items() if not cache.finished(name)}
            lacking.append((report, missing))
        except Refused as error:
            problems.append(f"{report.name}: {error}")
    for corpus in corpora.values() if options.plan else ():  # of your own text what was guessed, left out or cut
        print(*(f"note: {note}\n" for note in corpus.notes if isinstance(corpus.name, Own)), sep="", end="")
    if lacking:
        planned = plan(lacking, options.output, options.jobs, options.trainings)
        training = [job for job in planned["jobs"].values() if "runs" in job]
        runs = counted(sum(len(job["runs"]) for job in training), "training")
        made = counted(len(planned["jobs"]) - len(training), "report")
        print(f"to do: {made}, and {runs} in {counted(len(training), 'job')}", flush=True)
        if planned["jobs"] and not options.plan and not run(planned, folder, options.on, options.jobs):
            problems += failures(planned, folder)
    print(*problems, sep="\n", end="\n" * bool(problems), file=sys.stderr)
    if not options.plan and not options.trainings:
        print(f"reports: {write_index(options.output)}\nsummary: {write_summary(options.output) or 'not written'}")
    return int(bool(problems))


if __name__ == "__main__":
    start_command()
    sys.exit(main())
