"""What one job of a sweep does, in a process of its own: train runs, or make a report."""

import json
import os
import sys
from pathlib import Path

from lib.training import train
from lib.training.trained import Corpora
from tools.report.parameters import Refused
from tools.sweep.plan import Report


def main(folder: Path, name: str) -> int:
    """Does a job of the plan in a folder, and writes its mark; exit code 0, or 1 with a sentence."""
    plan = json.loads((folder / "plan.json").read_text())
    job = plan["jobs"][name]
    report = Report(Path(job["notebook"]), job["values"])
    if job["device"] == "cpu":  # it stays there, also where its machine has a GPU: other weights were planned
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        if "runs" in job:
            corpora = Corpora(report.settings.get("data_home"))
            runs = report.runs(corpora)
            if not runs.keys() >= set(job["runs"]):
                raise Refused("data or code changed since it was planned; start again")
            for run in job["runs"]:
                train(runs[run], corpora.home, corpora.load(runs[run]))
        else:
            from tools.report.run import make_report  # with papermill: not for jobs that train

            make_report(report.notebook, report.values, Path(plan["output"]))
        (folder / "done" / name).touch()
    except (FloatingPointError, OSError, RuntimeError, ValueError) as error:
        print(f"{job['title']} failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
