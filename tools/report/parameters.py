"""The parameters of a notebook, which its paper's settings check, and the name of its report."""

import hashlib
import re
from ast import literal_eval
from pathlib import Path
from typing import Any

from lib.datasets import Own
from lib.provenance import PROJECT
from lib.training.own_model import locate
from papers import PAPERS, Settings

NOTEBOOKS = PROJECT / "notebooks"
NAMED = ("dataset", "data", "profile", "model", "data_home")  # not by their values in a report's name
FILES = ("data", "model", "vectors", "data_home")  # a page has their names alone: folders are private
OF_TRAINING = ("encoders", "attentions", "seeds", "projection", "vectors")  # your own model has them already


class Refused(ValueError):
    """A command cannot be followed; the message names what was seen and what is allowed."""


def known_notebooks(folder: Path = NOTEBOOKS) -> list[str]:
    """Names of the notebooks in `folder`, without .ipynb."""
    return sorted(path.stem for path in folder.glob("*.ipynb"))


def find_notebook(name: str, folder: Path = NOTEBOOKS) -> Path:
    """The notebook of that name; Refused with the known ones otherwise."""
    if name not in known_notebooks(folder):
        raise Refused(f"unknown notebook {name!r}; known: {', '.join(known_notebooks(folder)) or 'none'}")
    return folder / f"{name}.ipynb"


def known_parameters(notebook: Path) -> dict[str, dict[str, Any]]:
    """Name, default and help of the parameters in the cell tagged `parameters`, by name."""
    import papermill

    known = papermill.inspect_notebook(literally(notebook))
    return {name: entry | {"default": literal(entry["default"])} for name, entry in known.items()}


def literally(path: Path) -> str:
    """A path for papermill, which takes {name} in it for the value of a parameter."""
    return str(path).replace("{", "{{").replace("}", "}}")


def literal(text: str) -> Any:
    """The Python value that a text is; else the text."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def all_values(notebook: Path, values: dict[str, Any]) -> dict[str, Any]:
    """The value of each parameter: of those that were not given, the default."""
    return {name: entry["default"] for name, entry in known_parameters(notebook).items()} | values


def given_parameters(notebook: Path, given: list[tuple[str, str]]) -> dict[str, Any]:
    """The values of (name, text) pairs, as the paper's settings read them; others are Python's values, or text.

    Raises:
        Refused: one is unknown or not allowed, or two exclude each other.
    """
    known, values = known_parameters(notebook), dict(given)
    if unknown := [name for name in values if name not in known]:
        others = [name for name in known_notebooks() if unknown[0] in known_parameters(NOTEBOOKS / f"{name}.ipynb")]
        of = f"{notebook.stem} (but of {', '.join(others)})" if others else notebook.stem
        raise Refused(f"unknown parameter {unknown[0]!r} of {of}; known: {', '.join(known) or 'none'}")
    if values.get("data") and "dataset" in values:
        raise Refused(f"dataset is {values['dataset']!r} and data is {values['data']!r}; allowed: one of the two")
    chosen = [name for name in OF_TRAINING if values.get(name)]
    if values.get("model") and chosen:
        raise Refused(f"model is {values['model']!r}, which is not trained here; leave {', '.join(chosen)} out")
    try:
        kind = PAPERS[notebook.stem].settings if notebook.stem in PAPERS else Settings
        settings = kind.of(values)
        checked = {name: getattr(settings, name, literal(text)) for name, text in values.items()}
        checked |= full_paths(values, settings) | ({"dataset": values["dataset"]} if "dataset" in values else {})
    except (KeyError, ValueError) as error:
        raise Refused(error.args[0]) from error
    except OSError as error:
        raise Refused(f"{str(error.filename)[:60]!r} cannot be read: {error.strerror}") from error
    return {name: list(value) if isinstance(value, tuple) else value for name, value in checked.items()}


def full_paths(values: dict[str, Any], settings: Settings) -> dict[str, str]:
    """The files of `data` and `model` by their full paths: the notebook's kernel runs in the project's folder."""
    paths = {}
    if values.get("model"):
        path, function = locate(values["model"])
        paths["model"] = ":".join(filter(None, (str(path.resolve()), function)))
    if isinstance(settings.dataset, Own):
        paths["data"] = str(settings.dataset.path)
    return {} if Path.cwd() == PROJECT else paths


def report_name(notebook: Path, values: dict[str, Any]) -> str:
    """Notebook, dataset, the profile where it is not quick, and what else is not the default."""
    defaults = all_values(notebook, {})
    settings = {"data": None, "profile": "quick", "model": None} | defaults | values
    parts = [notebook.stem]
    if data := settings["data"]:  # two files of one name have two reports
        parts.append(f"own-{slug(Path(data).stem, 24)}-{digest(data)}")
    else:
        parts.append(slug(settings.get("dataset", "")))
    parts.append(slug(settings["profile"].replace("quick", "")))
    if model := settings["model"]:
        path, function = locate(model)
        parts.append(f"model-{slug(f'{path.stem}-{function}'.strip('-'), 24)}-{digest(model)}")
    others = {name: one if isinstance(one, list) else [one] for name, one in sorted(values.items())}
    others = {name: one for name, one in others.items() if name not in NAMED and values[name] != defaults[name]}
    parts.append(slug("-".join(f"{name}={'+'.join(map(str, one))}" for name, one in others.items())))
    return "-".join(filter(None, parts))


def slug(text: str, longest: int = 48) -> str:
    """`text` for a file name; a hash of the text follows wherever the short form is not the text itself."""
    short = re.sub(r"[^A-Za-z0-9._=+-]+|\.{2,}", "_", text)[:longest].strip("._-")
    return short if short == text else f"{short}-{digest(text)}".strip("-")


def digest(text: str) -> str:
    """Six characters that tell texts apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:6]
