"""The summary of all reports: reports/summary.html, and its two tables as CSV."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from lib.atomic_write import write_text
from lib.papers import PAPERS, TITLES
from lib.quantity import title_of
from lib.tables import text
from tools.report.page import environment, kept, policy, style
from tools.summary import studies as summary
from tools.summary.studies import SHARE, TOLERANCE, Study

FILES = ("summary-claims.csv", "summary-values.csv")
SIGNS = {"supported": "✓", "contradicted": "✗", "undecided": "?", "mixed": "±"}


def write_summary(folder: Path, results: Path | None = None) -> Path:
    """Write summary.html and its tables into `folder`, from the reports in it and the kept tables in `results`.

    Args:
        results: as in `tools.summary.studies.kept`.
    """
    studies = [*studies_of(folder), *summary.kept(results)]
    claims, values = summary.verdicts(studies), summary.values(studies)
    for name, table in zip(FILES, (claims, values), strict=True):
        write_text(folder / name, table.to_csv(index=False))
    page = environment().get_template("summary.html.j2")
    shown = page.render(
        made_here=sum(bool(one.page) for one in studies), kept=sum(not one.page for one in studies), files=FILES,
        papers=[(name, matrix(claims[claims["paper"] == paper])) for paper, name in TITLES.items()],
        groups=groups(values), total=row_of_counts(summary.counts(values.assign(all="all"), "all").iloc[0]),
        absolute=f"{TOLERANCE:g}", share=f"{SHARE:.0%}", signs=SIGNS, style=style(), policy=policy([]),
    )  # fmt: skip
    return write_text(folder / "summary.html", shown)


def studies_of(folder: Path) -> list[Study]:
    """The studies of the finished reports in `folder` that left their tables."""
    studies = []
    for path in sorted(folder.glob("*.html")):
        about, left = kept(path, "summary", "tables")
        if about and left and about["notebook"] in PAPERS:
            profile = str(about["parameters"].get("profile", ""))
            altering = PAPERS[about["notebook"]].settings.altering()
            altered = tuple(name for name in about.get("changed", ()) if name in altering)
            tables = left["dataset"], left["values"], left["claims"]
            source = {"page": path.name, "made": about["made"], "altered": altered}
            studies.append(summary.study(about["notebook"], *tables, profile, **source))
    return studies


def matrix(rows: pd.DataFrame) -> dict[str, Any]:
    """A paper's claims by dataset: the datasets, and of each claim its words and a cell or None for each dataset."""
    datasets = sorted(rows["dataset"].unique())
    claims = []
    for short, same in rows.groupby("short", sort=False):
        cells = [same[same["dataset"] == dataset] for dataset in datasets]
        shown = [cell(part) if len(part) else None for part in cells]
        claims.append({"short": short, "claim": same["claim"].iloc[0], "cells": shown})
    return {"datasets": datasets, "claims": claims}


def cell(rows: pd.DataFrame) -> dict[str, Any]:
    """What a cell shows: the verdict, in words and as a class, the evidence for each model, and where it comes from."""
    words = summary.counted(rows)
    return {
        "kind": next(iter(words)) if len(words) == 1 else "mixed",
        "words": summary.in_words(rows),
        "models": rows[["model", "verdict", "evidence"]].to_dict("records"),
        "sources": [source(row) for _, row in rows.drop_duplicates(["report", "profile", "commit"]).iterrows()],
    }


def source(row: pd.Series) -> dict[str, str]:
    """Where a row comes from: the report's link, or "" for kept tables, and its profile, seeds and commit in words."""
    seeds = len(row["of_seeds"].split())
    altered = f", other {row['altered']}" if row["altered"] else ""
    words = f"{row['profile']}, {seeds} seed{'' if seeds == 1 else 's'}{altered}"
    return {"link": quote(row["report"]), "words": words, "commit": row["commit"]}


def groups(values: pd.DataFrame) -> list[dict[str, Any]]:
    """Of each paper the published values by dataset, those with a value of ours first: counts, and rows to read."""
    counts = summary.counts(values, "paper", "dataset")
    papers = []
    for paper, name in TITLES.items():
        datasets = counts[counts["paper"] == paper].sort_values("ours", ascending=False, kind="stable")
        of_paper = values[values["paper"] == paper]
        if of_paper.empty:
            continue  # a paper without a printed value
        parts = [
            row_of_counts(row) | {"rows": [value(one) for _, one in same.iterrows()]}
            for _, row in datasets.iterrows()
            if len(same := of_paper[of_paper["dataset"] == row["dataset"]])
        ]
        together = row_of_counts(summary.counts(of_paper, "paper").iloc[0])
        papers.append({"name": name, "datasets": parts, "together": together})
    return papers


def row_of_counts(row: pd.Series) -> dict[str, Any]:
    """The counts of `tools.summary.studies.counts` as plain numbers."""
    return {name: number if isinstance(number, str) else int(number) for name, number in row.items()}


def value(row: pd.Series) -> dict[str, Any]:
    """One published value to read, with ours where there is one."""
    interval = "–" if pd.isna(row["low"]) else f"{number(row['low'])} to {number(row['high'])}"
    return {
        "table": row["table"],
        "model": model(row),
        "quantity": title_of(row["quantity"]),
        "unit": row["unit"],
        "theirs": number(row["theirs"]),
        "ours": number(row["ours"]),
        "interval": interval,
        "difference": ("+" if row["difference"] > 0 else "") + number(row["difference"]),
        "inside": answer(row["inside"]),
        "within": answer(row["within"]),
        "source": source(row) if row["profile"] else None,
        "note": row["note"],
    }


def model(row: pd.Series) -> str:
    """The model that a value is of, without what it is by default; "the data" for a value of no model."""
    layers = "" if row["layers"] in ("", "1") else f"{row['layers']} layers"
    variant = "" if row["variant"] == "base" else row["variant"]
    named = [title_of(name) for name in (row["encoder"], row["attention"], row["projection"], variant) if name]
    return " · ".join(filter(None, [*named, layers])) or "the data"


def number(given: float) -> str:
    """A number for a reader, three digits after the point; a dash for none."""
    return text(given, "", 3)


def answer(given: object) -> str:
    """yes, no, or a dash without a value."""
    return "–" if pd.isna(given) else "yes" if given else "no"
