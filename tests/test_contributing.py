"""Each recipe of CONTRIBUTING.md, carried out on a copy of the project from the page's own code."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

PROJECT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"```(?:python|toml)\n# (?P<place>[^\n]+)\n(?P<code>.*?)```", re.DOTALL)
TOUCHED = {  # by recipe
    "An encoder": {"lib/models/encoders.py"},
    "A measure": {"lib/importance/hidden_gradient_norm.py", "notebooks/correlation.ipynb"},
    "A dataset": {"lib/datasets/rotten_tomatoes.py"},
    "A chart": {"lib/charts/reliability.py", "notebooks/correlation.ipynb"},
    "A finding": {"papers/findings.toml"},
    "A paper": {"papers/conicity.py", "papers/findings.toml", "notebooks/conicity.ipynb"},
}


def recipes() -> dict[str, list[tuple[str, str]]]:
    """The (place, code) of every block, by the recipe's title."""
    sections = re.split(r"^## ", (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {part.split("\n")[0]: BLOCK.findall(part) for part in sections}
    return {title: blocks for title, blocks in found.items() if blocks}


def file_of(place: str) -> str:
    return re.search(r"[\w/]+\.(?:py|ipynb|toml)", place)[0]


def carry_out(project: Path, place: str, code: str) -> None:
    """Writes one block where its first line says."""
    path = project / file_of(place)
    if path.suffix == ".ipynb":
        add_cell(path, place, code)
    elif place.endswith("at the end"):
        path.write_text(f"{path.read_text(encoding='utf-8')}\n\n{code}", encoding="utf-8")
    else:
        assert not path.exists(), f"{path.name} is there already"
        path.write_text(code, encoding="utf-8")


def add_cell(path: Path, place: str, code: str) -> None:
    """The block as a cell: before the heading that its place names, else the last one."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = nbformat.read(path, 4) if path.exists() else new_notebook(metadata={"kernelspec": kernel})
    cell = new_code_cell(code.rstrip("\n"), metadata={"tags": ["parameters"]} if place.endswith(": parameters") else {})
    heading = re.search(r'before "(.+)"', place)
    at = len(book.cells)
    if heading:
        at = next(i for i, one in enumerate(book.cells) if one.source.startswith(heading[1]))
    book.cells.insert(at, cell)
    nbformat.write(book, path)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The project with all recipes carried out, and a folder of data beside it."""
    project = tmp_path_factory.mktemp("copy") / "project"
    ignored = shutil.ignore_patterns(".git", ".venv", "raw", "cache", "reports", "__pycache__")
    shutil.copytree(PROJECT, project, ignore=ignored)
    for blocks in recipes().values():
        for place, code in blocks:
            carry_out(project, place, code)
    draw, rows = random.Random(0), ["split,review,fresh"]
    for number in range(260):
        fresh, split = number % 2, "train" if number < 160 else "dev" if number < 200 else "test"
        words = draw.choices(("bright", "warm", "witty", "bold") if fresh else ("dull", "flat", "stale", "slow"), k=2)
        rows.append(f"{split},{' '.join([*draw.choices('a the film plot of and in it'.split(), k=8), *words])},{fresh}")
    (project.parent / "data" / "rotten_tomatoes").mkdir(parents=True)
    (project.parent / "data" / "rotten_tomatoes" / "reviews.csv").write_text("\n".join(rows) + "\n")
    return project


MAKE_REPORTS = """
import json, sys
sys.path.insert(0, "tests")
from jupyter_client.provisioning import local_provisioner
import forked
from tools.report.__main__ import main

local_provisioner.launch_kernel = forked.kernel
sys.exit(any([main(arguments) for arguments in json.loads(sys.argv[1])]))
"""


def reports(project: Path, *asked: str) -> list[str]:
    """The pages of reports that the copy makes, in one process of its own."""
    home = {f"{name}_HOME": str(project.parent / name.lower()) for name in ("DATA", "CACHE", "RESULTS")}
    out = project.parent / "out"
    arguments = [[*one.split(), "--output", str(out)] for one in asked]
    command = [sys.executable, "-c", MAKE_REPORTS, json.dumps(arguments)]
    ran = subprocess.run(command, cwd=project, env=os.environ | home, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [next(out.glob(f"{one[0]}-*.html")).read_text(encoding="utf-8") for one in arguments]


def test_each_recipe_names_its_files_and_no_other_and_its_code_passes_the_checks_of_the_project(copy):
    assert {title: {file_of(place) for place, _ in blocks} for title, blocks in recipes().items()} == TOUCHED
    for check in (["check", "."], ["format", "--check", "lib", "papers"]):
        command = [sys.executable, "-m", "ruff", *check]
        ran = subprocess.run(command, cwd=copy, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_the_recipes_add_is_in_reports(copy):
    """An encoder, a measure, a dataset, a chart and a finding in one, and a paper with its finding."""
    chosen = "-p dataset rotten_tomatoes -p seeds 0"
    more = "-p encoders gru -p attentions additive -p vectors random"
    page, paper = reports(copy, f"correlation {chosen} {more}", f"conicity {chosen}")
    shown = ("Rotten Tomatoes", "gru", "gradient norm of the hidden states", "Is the model as right as it is sure?")
    assert [words for words in (*shown, "Permuting the attention makes less than half") if words not in page] == []
    assert re.search(r"The hidden states of a BiLSTM point the same way.*?\d \[.*?\]", paper, re.DOTALL)
