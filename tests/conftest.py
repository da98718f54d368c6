"""What tests need from outside: real data and a browser. What is missing is reported, or is a failure."""

import os
import shutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported

import pytest
from joblib import cpu_count

PROJECT = Path(__file__).resolve().parents[1]
REQUIRE_ALL = os.environ.get("REQUIRE_ALL", "") not in ("", "0")
MISSING = {
    "data": "real data (set DATA_HOME to its folder)",
    "browser": "a browser (install Chromium, or set BROWSER_PATH)",
    "gpu": "a GPU that torch can use",
}
OPTIONAL = ("gpu",)  # reported where it is missing, never a failure: few machines have one
LONG = ("test_faults.py", "test_notebooks.py", "test_contributing.py", "test_growth.py", "test_documents.py")
# Whole files, the longest first: none is left for the end when all others are through.
HEAVY = "regularization report_page report training importance summary datasets ground_truth own"


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("DATA_HOME"):
        os.environ["DATA_HOME"] = str(Path(os.environ["DATA_HOME"]).resolve())


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores, at most 8: several tests wait, for kills, jobs and the browser."""
    return min(cpu_count() + 1, 8)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole notebooks and sweeps first, each by itself; then long files, any in one process, with its fixtures."""
    first = [*LONG, *(f"test_{name}.py" for name in HEAVY.split())]
    items.sort(key=lambda one: first.index(one.path.name) if one.path.name in first else len(first))
    for one in items:
        if one.path.name not in LONG:
            one.add_marker(pytest.mark.xdist_group(one.path.name))


@pytest.fixture(scope="session")
def data_home(pytestconfig: pytest.Config) -> Path:
    """The folder of real datasets, $DATA_HOME."""
    home = os.environ.get("DATA_HOME")
    return Path(home) if home and Path(home).is_dir() else _missing("data")


@pytest.fixture(scope="session")
def browser() -> str:
    """The path of Chromium: $BROWSER_PATH, or the one on the PATH."""
    given = os.environ.get("BROWSER_PATH")
    found = shutil.which(given) if given else shutil.which("chromium") or shutil.which("chromium-browser")
    return found or _missing("browser")


@pytest.fixture(scope="module")
def one_cache(tmp_path_factory: pytest.TempPathFactory):
    """One cache for the module: what its tests share is trained once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def chromium(browser: str):
    """The browser, running. Not for longer than a module: while it runs, nothing else can start an event loop here."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def forked_kernels():
    """Kernels of notebooks need not import torch and the library again."""
    import forked
    from jupyter_client.provisioning import local_provisioner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_provisioner, "launch_kernel", forked.kernel)
        yield


@pytest.fixture(scope="session")
def transformers() -> ModuleType:
    """The package, which downloads nothing here."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    return import_module("transformers")


@pytest.fixture(scope="session")
def gpu() -> str:
    """The device "cuda"."""
    return "cuda" if import_module("torch").cuda.is_available() else _missing("gpu")


def _missing(what: str):
    if REQUIRE_ALL and what not in OPTIONAL:
        pytest.fail(f"REQUIRE_ALL is set, and this test needs {MISSING[what]}", pytrace=False)
    pytest.skip(f"this test needs {MISSING[what]}")
