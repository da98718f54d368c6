"""The summarised tables of the last `paper` run of each notebook and dataset, kept for the README and the summary."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from lib import provenance
from lib.atomic_write import write_text
from lib.datasets import Own
from lib.notebook import Kept
from lib.papers import PAPERS, Settings, runs
from lib.provenance import PROJECT
from lib.quantity import RUN_COLUMNS
from lib.training import Run, Trained

FOLDER = PROJECT / "reports" / "results"


def keep(
    notebook: str,
    trained: Sequence[Trained],
    values: pd.DataFrame,
    evidence: pd.DataFrame,
    folder: Path | None = None,
    commit: str = "",
    **chosen,
) -> Kept | str:
    """Leaves both tables to the report; of a whole run in profile `paper` it writes them to files too.

    <notebook>-<dataset>.csv and <notebook>-<dataset>-evidence.csv. A part of a run would replace the tables of the
    whole. Each row carries the commit, the device, the word vectors and the seeds.

    Args:
        trained: the runs that were measured, all of one dataset; nothing is kept of those of your own model.
        evidence: rows of `lib.papers.claims.EVIDENCE`, from which the summary judges anew.
        folder: by default $RESULTS_HOME, else reports/results of the project.
        commit: of the code that ran; by default of the code as it is now.
        chosen: parameters that are not their defaults after a sweep, such as delta.
    """
    first = trained[0].run
    if not isinstance(first, Run):
        return "not kept: the model is your own; only results of models that are trained here are kept"
    made = {"commit": commit or provenance.commit()} | provenance_of(trained, PAPERS[notebook].settings(), chosen)
    texts = [table.assign(**made).to_csv(index=False, float_format="%.6g") for table in (values, evidence)]
    left = {"dataset": str(first.dataset), **dict(zip(("values", "evidence"), texts, strict=True))}
    if refused := not_kept(notebook, trained, chosen):
        return Kept(f"not kept: {refused}", left)
    folder = Path(folder or os.environ.get("RESULTS_HOME") or FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    ending = "-claims" if "verdict" in evidence else "-evidence"  # a table of verdicts: not converted yet
    paths = [folder / f"{notebook}-{first.dataset}{ending}.csv" for ending in ("", ending)]
    for path, text in zip(paths, texts, strict=True):
        write_text(path, text)
    names = " and ".join(path.name for path in paths)
    return Kept(f"kept in {names}; python -m tools.summary shows them in the README", left)


def not_kept(notebook: str, trained: Sequence[Trained], chosen: dict) -> str:
    """Why a run's tables are not written down; "" where they are."""
    first = trained[0].run
    if first.profile != "paper":
        return f"the profile is {first.profile!r}; only results of 'paper' are"
    if isinstance(first.dataset, Own):
        return "the text is your own; only results on public datasets are"
    whole = runs(notebook, first.dataset, "paper", device="cpu", **chosen)
    if {planned(one.run) for one in trained} != set(map(planned, whole)):
        return "what is trained is not all of the notebook's runs; leave encoders, attentions, seeds and lambdas out"
    return ""


def provenance_of(trained: Sequence[Trained], usual: Settings, chosen: dict) -> dict[str, str]:
    """What each row of the tables carries beside the commit: device, vectors, seeds, and what was chosen."""
    first = trained[0].run
    made = {
        "device": first.device_kind,
        "vectors": Path(trained[0].vectors.source).name,
        "run_seeds": " ".join(str(seed) for seed in sorted({one.run.seed for one in trained})),
    }
    adversaries = [one.run for one in trained if one.run.variant == "adversary" and one.run.option("trains") == "all"]
    limits = {str(run.epochs) for run in adversaries}
    each = Counter(
        (*(getattr(run, name) for name in RUN_COLUMNS), run.options, run.base and run.base.variant)
        for run in (one.run for one in trained)
    ).values()
    made |= {"chosen": others} if (others := ", ".join(unusual(usual, chosen))) else {}
    made["seeds_each"] = " to ".join(dict.fromkeys((str(min(each)), str(max(each)))))
    return made | ({"adversary_epochs": " ".join(sorted(limits))} if limits else {})


def unusual(usual: Settings, chosen: dict) -> list[str]:
    """What was chosen and is not what it is by itself: "train_texts 12000"."""
    return [
        f"{name} {value}"
        for name, value in chosen.items()
        if (value or value is False) and value != getattr(usual, name)
    ]


def planned(run: Run) -> Run:
    """The run as the paper lists it: on any device, and an adversary whatever its most epochs, which are noted."""
    kept = tuple(option for option in run.options if not (run.variant == "adversary" and option[0] == "epochs"))
    return replace(run, device_kind="cpu", options=kept, base=planned(run.base) if run.base else None)
