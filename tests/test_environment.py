"""The environment, the commands, and what must never be committed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from jupyterlab.commands import get_app_dir

from lib.charts import MIME

PROJECT = Path(__file__).resolve().parents[1]
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"


def lines(name: str) -> list[str]:
    text = (PROJECT / name).read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def pins(name: str) -> dict[str, set[str]]:
    """Name -> versions (several where they differ by Python) of a requirements file."""
    found: dict[str, set[str]] = {}
    for line in lines(name):
        package, version = line.split(";")[0].strip().split("==")
        found.setdefault(package.lower().replace("_", "-"), set()).add(version)
    return found


def tracked() -> list[Path]:
    """The files that git has, or would have: those ignored are left out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.split("\0") if name and (path := PROJECT / name).is_file()]


def make(*arguments: str, cwd: Path = PROJECT, **environment: str) -> subprocess.CompletedProcess:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "DATA_HOME"))}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=cwd, env=clean | environment, capture_output=True, text=True, timeout=60)


def test_every_requirement_is_pinned_and_constrained_to_the_same_version_without_host_path_or_hash():
    assert all(re.fullmatch(rf"{NAME}==[0-9][^\s;]*", line) for line in lines("requirements.txt"))
    required, constrained = pins("requirements.txt"), pins("constraints.txt")
    assert {name: constrained.get(name) for name in required} == required
    assert not re.search("://|--|@ ", "\n".join(lines("constraints.txt")))


def test_what_the_project_imports_is_required():
    known = {"sklearn": "scikit-learn", "IPython": "ipykernel", "vl_convert": "vl-convert-python"}
    known |= {"jinja2": "nbconvert", "pygments": "nbconvert", "traitlets": "nbconvert", "jupyter_client": "nbclient"}
    known |= {"pydantic_core": "pydantic"}
    required, own = set(pins("requirements.txt")), {"lib", "papers", "tools", "tests", "benchmarks"}
    for path in (path for room in own for path in PROJECT.glob(f"{room}/**/*.py")):
        found = set(re.findall(r"^\s*(?:from|import) ([a-zA-Z0-9_]+)", path.read_text(encoding="utf-8"), re.MULTILINE))
        foreign = found - set(sys.stdlib_module_names) - own - {"small"}
        names = {known.get(name, name) for name in foreign if not (path.parent / f"{name}.py").exists()}
        assert {name.lower().replace("_", "-") for name in names} <= required, path.name


def test_a_command_sets_the_environment_up_once_by_itself(tmp_path):
    for name in ("Makefile", "requirements.txt", "constraints.txt"):
        shutil.copy(PROJECT / name, tmp_path)
    planned = make("-n", "reports", "test", "lab", "bench", "NOTEBOOKS=one", cwd=tmp_path)
    assert planned.returncode == 0 and planned.stdout.count("-m venv") == 1, planned.stderr
    assert "-r requirements.txt -c constraints.txt" in planned.stdout
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "installed").touch()
    assert "-m venv" not in make("-n", "reports", "NOTEBOOKS=one", cwd=tmp_path).stdout
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "id").chmod(0o755)
    of_root = make("lab", cwd=tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert of_root.returncode and of_root.stdout == "JupyterLab does not run as root: make lab LAB=--allow-root\n"
    assert "--allow-root" in make("-n", "lab", "LAB=--allow-root", cwd=tmp_path).stdout.splitlines()[-1]


def test_make_says_clearly_when_there_is_no_fitting_python_and_an_interrupted_installation_leaves_no_stamp(tmp_path):
    shutil.copy(PROJECT / "Makefile", tmp_path)
    (tmp_path / "requirements.txt").write_text("no such requirement!\n")
    (tmp_path / "constraints.txt").write_text("")
    refused = make("environment", "PYTHON=/nowhere/python3", cwd=tmp_path)
    assert refused.returncode != 0 and "No Python 3.11, 3.12 or 3.13" in refused.stdout
    assert make("environment", f"PYTHON={sys.executable}", cwd=tmp_path).returncode != 0
    assert not (tmp_path / ".venv" / "installed").exists()


def test_reports_passes_the_choices_on():
    chosen = ["NOTEBOOKS=one two", "DATASETS=sst 20news", "PROFILE=paper", "SEEDS=0,1", "DATA_HOME=lib/..", "ON=slurm"]
    given = make("-n", "reports", *chosen)
    assert given.returncode == 0, given.stderr
    assert "is not a folder" in make("-n", "test", "DATA_HOME=/no/such/folder").stderr
    assert "-m tools.sweep three --profile" in make("-n", "report", "NOTEBOOK=three", "NOTEBOOKS=one two").stdout
    passed = '-m tools.sweep one two --profile "paper" --on "slurm" --datasets sst 20news --seeds "0,1"'
    assert passed in " ".join(given.stdout.replace("\\\n", " ").split())


def test_the_installed_jupyterlab_draws_the_charts_and_opens_working_copies_that_git_ignores():
    served = Path(get_app_dir()) / "static"
    assert any(MIME in path.read_text(encoding="utf-8") for path in served.glob("jlab_core.*.js"))
    planned = make("-n", "lab").stdout
    assert "cp -n notebooks/*.ipynb lab/" in planned and f'--notebook-dir="{PROJECT}/lab"' in planned
    subprocess.run(["git", "check-ignore", "lab/correlation.ipynb"], cwd=PROJECT, capture_output=True, check=True)


def test_no_tracked_file_names_this_machine_or_a_registry():
    here = [f"{PROJECT}/", f"{PROJECT.parent}/", "/" + "tmp/"]
    registries = ["find-" + "links", "extra-" + "index-url", "pypi." + "org", "files.python" + "hosted"]
    for path in tracked():
        if path.suffix not in (".png", ".svg", ".gz", ".npz"):
            text = path.read_text(encoding="utf-8")
            assert not [word for word in here + registries if word in text], path.relative_to(PROJECT)


def test_no_raw_data_is_tracked_and_reports_only_where_they_are_kept():
    names = {path.relative_to(PROJECT) for path in tracked()}
    of_data = {Path("data", name) for name in ("README.md", "published.csv", "differences.csv")}
    assert {name for name in names if name.parts[0] == "data"} <= of_data
    assert {str(name.parent) for name in names if name.parts[0] == "reports"} <= {"reports/results", "reports/rendered"}


def test_notebooks_are_kept_without_outputs():
    for path in (PROJECT / "notebooks").glob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        assert not [cell for cell in code if cell["outputs"] or cell["execution_count"]], path.name
        assert sum("parameters" in cell["metadata"].get("tags", []) for cell in code) == 1
        assert notebook["metadata"]["kernelspec"]["name"] == "python3"


def test_ruff_has_nothing_to_say():
    command = [sys.executable, "-m", "ruff", "check", "-q", "."]
    checked = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
