"""python -m tools.summary: pictures of the kept tables, the findings in the README, and summary.md."""

import re
from pathlib import Path

import pandas as pd

from lib import charts, published
from lib.papers import PAPERS
from lib.provenance import PROJECT
from lib.results import FOLDER
from tools import summary

PICTURED = ("correlation",)


def finding(claims: pd.DataFrame, dataset: str) -> str:
    """One paragraph for the README: each claim's verdict by model."""
    row = claims.iloc[0]
    said = []
    for short, same in claims.groupby("short", sort=False):
        models = {word: list(models) for word, models in same.groupby("verdict", sort=False)["model"]}
        verdicts = [f"{word} for {', '.join(names) if len(models) > 1 else 'all'}" for word, names in models.items()]
        said.append(f"*{short}*: {'; '.join(verdicts)}")
    seeds = str(row.get("seeds_each", len(str(row["of_seeds"]).split())))
    told = "1 seed" if seeds == "1" else f"{seeds} seeds"
    if isinstance(row.get("chosen"), str):
        told += re.sub(r", seeds \[[^\]]*\]", "", f", {row['chosen']}")  # their number is told already
    if "adversary_epochs" in row:
        told += f", adversaries of at most {row['adversary_epochs']} epochs"
    return f"**{dataset}**, {told}. {'. '.join(said)}."


def picture(notebook: str, dataset: str, folder: Path = FOLDER) -> Path | None:
    """Draws the taus of a kept table beside the published ones: <notebook>-<dataset>.svg; None where there are none."""
    ours = pd.read_csv(folder / f"{notebook}-{dataset}.csv")
    ours = ours[ours["quantity"].str.startswith("kendall_tau")]
    theirs = PAPERS[notebook].published(dataset)
    beside = published.beside(ours, theirs[theirs["quantity"].isin(ours["quantity"])])
    beside = beside[beside["theirs"].notna()]
    if beside.empty:
        return None
    path = folder / f"{notebook}-{dataset}.svg"
    charts.enable()
    charts.taus_beside(beside).save(path)
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
            drawn = picture(notebook, path.name.removeprefix(f"{notebook}-").removesuffix("-claims.csv"))
            print(drawn or f"no published values beside {path.name}")
    page = PROJECT / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8")), encoding="utf-8")
    (FOLDER / "summary.md").write_text(summary.markdown(summary.kept(FOLDER)), encoding="utf-8")
    print(page, FOLDER / "summary.md", sep="\n")


if __name__ == "__main__":
    main()
