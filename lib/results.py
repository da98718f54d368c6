"""The summarised tables of the last `paper` run of each notebook and dataset, and the README's findings from them.

`python -m lib.results` draws the picture of each kept table and writes the findings into the README.
"""

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from lib import charts, published
from lib.datasets import Own
from lib.programme import Choice, runs
from lib.provenance import PROJECT, commit
from lib.quantities import RUN_COLUMNS
from lib.training import Run, Trained

FOLDER = PROJECT / "reports" / "results"
PAPER_OF = {
    "correlation": "jain2019",
    "adversary": "wiegreffe2019",
    "regularization": "tutek2020",
    "sparsity": "meister2021",
    "erasure": "serrano2019",
}
PICTURED = ("correlation",)


def keep(
    notebook: str,
    trained: Sequence[Trained],
    summary: pd.DataFrame,
    claims: pd.DataFrame,
    folder: Path | None = None,
    **chosen,
) -> str:
    """Writes <notebook>-<dataset>.csv and <notebook>-<dataset>-claims.csv, and says where.

    Only a whole run in profile `paper` is kept: a part of it would replace the tables of the whole. Each row carries
    the commit, the device, the word vectors and the seeds.

    Args:
        trained: the runs that were measured, all of one dataset.
        folder: by default $RESULTS_HOME, else reports/results of the project.
        chosen: what the programme was told after a sweep, such as delta.
    """
    first = trained[0].run
    if not isinstance(first, Run):
        return "not kept: the model is one's own; only results of models that are trained here are"
    if first.profile != "paper":
        return f"not kept: the profile is {first.profile!r}; only results of 'paper' are"
    if isinstance(first.dataset, Own):
        return "not kept: the text is one's own; only results on datasets that others have are"
    whole = runs(notebook, first.dataset, "paper", device="cpu", **chosen)
    if {planned(one.run) for one in trained} != set(map(planned, whole)):
        return "not kept: what is trained is not the whole programme; leave encoders, attentions, seeds and lambdas out"
    folder = Path(folder or os.environ.get("RESULTS_HOME") or FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    seeds = " ".join(str(seed) for seed in sorted({one.run.seed for one in trained}))
    made = {
        "commit": commit(),
        "device": first.device_kind,
        "vectors": Path(trained[0].vectors.source).name,
        "of_seeds": seeds,
    }
    adversaries = [one.run for one in trained if one.run.variant == "adversary" and one.run.option("trains") == "all"]
    limits = {str(run.epochs) for run in adversaries}
    each = Counter(
        (*(getattr(run, name) for name in RUN_COLUMNS), run.options, run.base and run.base.variant)
        for run in (one.run for one in trained)
    ).values()
    made |= {"chosen": told} if (told := ", ".join(unusual(chosen))) else {}
    made["seeds_each"] = " to ".join(dict.fromkeys((str(min(each)), str(max(each)))))
    made |= {"adversary_epochs": " ".join(sorted(limits))} if limits else {}
    paths = []
    for name, table in ((f"{notebook}-{first.dataset}", summary), (f"{notebook}-{first.dataset}-claims", claims)):
        paths.append(folder / f"{name}.csv")
        partial = paths[-1].with_suffix(".partial")
        table.assign(**made).to_csv(partial, index=False, float_format="%.6g")
        partial.replace(paths[-1])
    return f"kept in {' and '.join(path.name for path in paths)}; python -m lib.results brings them into the README"


def unusual(chosen: dict) -> list[str]:
    """What was chosen and is not what it is by itself: "train_texts 12000"."""
    usual = Choice()
    return [
        f"{name} {value}"
        for name, value in chosen.items()
        if (value or value is False) and value != getattr(usual, name)
    ]


def planned(run: Run) -> Run:
    """The run as the programme lists it: on any device, and an adversary whatever its most epochs, which are noted."""
    kept = tuple(option for option in run.options if not (run.variant == "adversary" and option[0] == "epochs"))
    return replace(run, device_kind="cpu", options=kept, base=planned(run.base) if run.base else None)


def finding(claims: pd.DataFrame, dataset: str) -> str:
    """One paragraph for the README: each claim's verdict by model."""
    row = claims.iloc[0]
    said = []
    for short, same in claims.groupby("short", sort=False):
        models = {word: list(models) for word, models in same.groupby("verdict", sort=False)["model"]}
        verdicts = [f"{word} for {', '.join(names) if len(models) > 1 else 'all'}" for word, names in models.items()]
        said.append(f"*{short}*: {'; '.join(verdicts)}")
    told = f"{row.get('seeds_each', len(str(row['of_seeds']).split()))} seeds"
    if isinstance(row.get("chosen"), str):
        told += f", {row['chosen']}"
    if "adversary_epochs" in row:
        told += f", adversaries of at most {row['adversary_epochs']} epochs"
    return f"**{dataset}**, {told}. {'. '.join(said)}."


def picture(notebook: str, dataset: str, folder: Path = FOLDER) -> Path:
    """Draws the taus of a kept table beside the published ones: <notebook>-<dataset>.svg."""
    ours = pd.read_csv(folder / f"{notebook}-{dataset}.csv")
    ours = ours[ours["quantity"].str.startswith("kendall_tau")]
    theirs = published.table(PAPER_OF[notebook], dataset)
    beside = published.beside(ours, theirs[theirs["quantity"].isin(ours["quantity"])])
    path = folder / f"{notebook}-{dataset}.svg"
    charts.enable()
    charts.taus_beside(beside[beside["theirs"].notna()]).save(path)
    return path


def readme(text: str, folder: Path = FOLDER) -> str:
    """The README's text with what is kept between `<!-- findings: NOTEBOOK -->` and `<!-- end -->`."""

    def kept(match: re.Match) -> str:
        notebook, endings = match[1], "-claims.csv"
        paths = sorted(folder.glob(f"{notebook}-*{endings}"))
        findings = [
            finding(pd.read_csv(path), path.name.removeprefix(f"{notebook}-").removesuffix(endings)) for path in paths
        ]
        return f"<!-- findings: {notebook} -->{' '.join(findings) or 'not run yet'}<!-- end -->"

    return re.sub(r"<!-- findings: (\w+) -->.*?<!-- end -->", kept, text, flags=re.DOTALL)


def main() -> None:
    for notebook in PICTURED:
        for path in sorted(FOLDER.glob(f"{notebook}-*-claims.csv")):
            print(picture(notebook, path.name.removeprefix(f"{notebook}-").removesuffix("-claims.csv")))
    page = PROJECT / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8")), encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
