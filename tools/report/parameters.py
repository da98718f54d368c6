"""The parameters of a notebook: its paper's settings check what a command line gives."""

from ast import literal_eval
from pathlib import Path
from typing import Any, get_type_hints

from pydantic.dataclasses import dataclass as validated

from lib.datasets import Own
from lib.provenance import PROJECT
from lib.training.own_model import locate
from papers import PAPERS, Settings
from papers.settings import Several

NOTEBOOKS = PROJECT / "notebooks"
APPENDIX = "appendix"  # the folder of notebooks with what only an expert asks
OF_TRAINING = ("encoders", "attentions", "seeds", "projection", "vectors")  # your own model has them already


class Refused(ValueError):
    """A command cannot be followed; the message names what was seen and what is allowed."""


def known_notebooks(folder: Path = NOTEBOOKS) -> list[str]:
    """Names of the notebooks in `folder`, without .ipynb."""
    return sorted(path.stem for path in folder.glob("*.ipynb"))


def find_notebook(name: str, folder: Path = NOTEBOOKS) -> Path:
    """The notebook of that name, such as correlation or appendix/NAME; Refused with the known ones otherwise."""
    known = [*known_notebooks(folder), *(f"{APPENDIX}/{name}" for name in known_notebooks(folder / APPENDIX))]
    if name not in known:
        raise Refused(f"unknown notebook {name!r}; known: {', '.join(known) or 'none'}")
    return folder / f"{name}.ipynb"


def known_parameters(notebook: Path) -> dict[str, dict[str, Any]]:
    """Name, default and help of the parameters in the cell tagged `parameters`, by name.

    Raises:
        Refused: the file is no notebook.
    """
    import nbformat
    import papermill

    try:
        known = papermill.inspect_notebook(str(notebook))
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, UnicodeDecodeError) as error:
        raise Refused(f"{notebook} is not a notebook: {str(error).splitlines()[0]}") from error
    return {name: entry | {"default": literal(entry["default"])} for name, entry in known.items()}


def literal(text: str) -> Any:
    """The Python value that a text is; else the text."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def all_values(notebook: Path, values: dict[str, Any]) -> dict[str, Any]:
    """The value of each parameter: of those that were not given, the default."""
    return {name: entry["default"] for name, entry in known_parameters(notebook).items()} | values


def settings_class(notebook: Path) -> type[Settings]:
    """The settings of a paper's notebook, or of an appendix NAME-... to it; of another those that all share.

    Settings that only the notebook's cell declares have the types of their defaults.
    """
    paper = PAPERS.get(notebook.stem.partition("-")[0])
    base = paper.settings if paper else Settings
    defaults = all_values(notebook, {})
    kinds = {name: kind_of(value) for name, value in defaults.items() if name not in get_type_hints(base)}
    return validated(frozen=True)(type(base.__name__, (base,), {"__annotations__": kinds} | dict.fromkeys(kinds)))


def kind_of(default: Any) -> Any:
    """The type of a default, of a list that of its first element."""
    if isinstance(default, list) and default:
        return Several[type(default[0])]
    return Any if default is None else type(default)


def given_parameters(notebook: Path, given: list[tuple[str, str]]) -> dict[str, Any]:
    """The values of (name, text) pairs, in the parameters' types.

    Raises:
        Refused: one is unknown or not allowed.
    """
    known, values = known_parameters(notebook), dict(given)
    if unknown := [name for name in values if name not in known]:
        raise Refused(f"unknown parameter {unknown[0]!r} of {notebook.stem}; known: {', '.join(known) or 'none'}")
    refuse_contradictions(values)
    try:
        settings = settings_class(notebook).of(values)
        checked = {name: getattr(settings, name) for name in values} | full_paths(values, settings)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in checked.items()}
    except (KeyError, ValueError) as error:
        raise Refused(error.args[0]) from error


def refuse_contradictions(values: dict[str, Any]) -> None:
    """Raises Refused where two given parameters exclude each other."""
    if values.get("data") and "dataset" in values:
        raise Refused(f"dataset is {values['dataset']!r} and data is {values['data']!r}; allowed: one of the two")
    chosen = [name for name in OF_TRAINING if values.get(name)]
    if values.get("model") and chosen:
        raise Refused(f"model is {values['model']!r}, which is not trained here; leave {', '.join(chosen)} out")


def full_paths(values: dict[str, Any], settings: Settings) -> dict[str, str]:
    """The files of `data` and `model` by their full paths: the notebook's kernel runs in the project's folder."""
    paths = {}
    if values.get("model"):
        path, function = locate(values["model"])
        paths["model"] = f"{path.resolve()}:{function}"
    if isinstance(settings.dataset, Own):
        paths["data"] = str(settings.dataset.path)
    return {} if Path.cwd() == PROJECT else paths
