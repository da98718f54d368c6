"""The parameters of a notebook: what its cell declares, and what a command line gives for them."""

import hashlib
import re
from ast import literal_eval
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import Field
from pydantic.dataclasses import dataclass as validated

from lib.datasets import Own
from lib.provenance import PROJECT
from lib.training.own_model import locate
from papers import PAPERS, Settings
from papers.settings import Several, allowed

NOTEBOOKS = PROJECT / "notebooks"
OF_TRAINING = ("encoders", "attentions", "seeds", "projection", "vectors")  # your own model has them already
APPENDIX = "appendix"  # the folder of notebooks with what only an expert asks


class Refused(ValueError):
    """A command cannot be followed; the message names what was seen and what is allowed."""


@dataclass(frozen=True)
class Parameter:
    """One line of a notebook's parameters cell: `name: type = default  # help`."""

    name: str
    kind: Any
    default: Any
    help: str


def known_notebooks(folder: Path = NOTEBOOKS) -> list[str]:
    """Names of the notebooks in `folder`, without .ipynb."""
    return sorted(path.stem for path in folder.glob("*.ipynb"))


def find_notebook(name: str, folder: Path = NOTEBOOKS) -> Path:
    """The notebook of that name, such as correlation or appendix/NAME; Refused with the known ones otherwise."""
    known = [*known_notebooks(folder), *(f"{APPENDIX}/{name}" for name in known_notebooks(folder / APPENDIX))]
    if name not in known:
        raise Refused(f"unknown notebook {name!r}; known: {', '.join(known) or 'none'}")
    return folder / f"{name}.ipynb"


def base_settings(notebook: Path) -> type[Settings]:
    """The settings of a paper's notebook, or of an appendix NAME-... to it; of another those that all share."""
    paper = PAPERS.get(notebook.stem.partition("-")[0])
    return paper.settings if paper else Settings


def settings_of(notebook: Path, known: dict[str, Parameter]) -> type[Settings]:
    """The settings of a notebook: `base_settings` with what its cell declares."""
    base = base_settings(notebook)
    kinds = {name: one.kind for name, one in known.items()}
    defaults = {name: Field(one.default, description=one.help) for name, one in known.items()}
    return validated(frozen=True)(type(base.__name__, (base,), {"__annotations__": kinds} | defaults))


def known_parameters(notebook: Path) -> dict[str, Parameter]:
    """The parameters of the cell tagged `parameters`, by name; Refused where the file is no notebook."""
    import nbformat
    import papermill

    try:
        found = papermill.inspect_notebook(str(notebook))
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, UnicodeDecodeError) as error:
        raise Refused(f"{notebook} is not a notebook: {str(error).splitlines()[0]}") from error
    kinds, known = get_type_hints(base_settings(notebook), include_extras=True), {}
    for name, entry in found.items():
        default = literal(entry["default"])
        kind = kinds.get(name) or kind_of(default)
        values = f"allowed: {allowed(kind)}" if allowed(kind) else ""
        known[name] = Parameter(name, kind, default, "; ".join(filter(None, [values, entry["help"]])))
    return known


def literal(text: str) -> Any:
    """The Python value that a text is; else the text."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def kind_of(default: Any) -> Any:
    """The type of a parameter that no settings know: its default's."""
    if isinstance(default, list | tuple):
        return Several[type(default[0])] if default else Several[Any]
    return Any if default is None else type(default)


def given_parameters(notebook: Path, given: list[tuple[str, str]]) -> dict[str, Any]:
    """The values of (name, text) pairs, in the parameters' types.

    Raises:
        Refused: one is unknown or not allowed.
    """
    known, values = known_parameters(notebook), dict(given)
    for name in values:
        if name not in known:
            raise Refused(f"unknown parameter {name!r} of {notebook.stem}; known: {', '.join(known) or 'none'}")
    refuse_contradictions(values)
    try:
        settings = settings_of(notebook, known).of(values)
        values = {name: getattr(settings, name) for name in values}
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return values | in_full(values, settings)
    except (KeyError, ValueError) as error:
        raise Refused(error.args[0]) from error


def all_values(notebook: Path, values: dict[str, Any]) -> dict[str, Any]:
    """The value of each parameter: of those that were not given, the default."""
    return {name: one.default for name, one in known_parameters(notebook).items()} | values


def refuse_contradictions(values: dict[str, Any]) -> None:
    """Raises Refused where two given parameters exclude each other."""
    if values.get("data") and "dataset" in values:
        raise Refused(f"dataset is {values['dataset']!r} and data is {values['data']!r}; allowed: one of the two")
    chosen = [name for name in OF_TRAINING if values.get(name)]
    if values.get("model") and chosen:
        raise Refused(f"model is {values['model']!r}, which is not trained here; leave {', '.join(chosen)} out")


def in_full(values: dict[str, Any], settings: Settings) -> dict[str, str]:
    """The files of `data` and `model` by their full paths: the notebook's kernel runs in the project's folder."""
    paths = {}
    if values.get("model"):
        path, function = locate(values["model"])
        paths["model"] = f"{path.resolve()}:{function}"
    if isinstance(settings.dataset, Own):
        paths["data"] = str(settings.dataset.path)
    return {} if Path.cwd() == PROJECT else paths


def report_name(notebook: Path, values: dict[str, Any]) -> str:
    """A name for the report's file: notebook, dataset, the profile where it is not quick, and what else differs."""
    defaults = {name: parameter.default for name, parameter in known_parameters(notebook).items()}
    settings = defaults | values
    parts = [f"{APPENDIX}-{notebook.stem}" if notebook.parent.name == APPENDIX else notebook.stem]
    if settings.get("data"):  # two files of one name have two reports
        parts.append(f"own-{slug(Path(str(settings['data'])).stem, 24)}-{_digest(settings['data'])}")
    elif "dataset" in settings:
        parts.append(slug(str(settings["dataset"])))
    if settings.get("profile", "quick") != "quick":
        parts.append(slug(str(settings["profile"])))
    if settings.get("model"):  # its folder is private
        path, function = locate(settings["model"])
        parts.append(f"model-{slug(f'{path.stem}-{function}', 24)}-{_digest(settings['model'])}")
    own = ("dataset", "data", "profile", "model")
    others = sorted(n for n, v in values.items() if n not in own and v != defaults[n])
    if others:
        parts.append(slug("-".join(f"{name}={_short(values[name])}" for name in others)))
    return "-".join(parts)


def slug(text: str, longest: int = 48) -> str:
    """`text` for a file name; a hash of the text follows wherever the short form is not the text itself."""
    short = re.sub(r"[^A-Za-z0-9._=+-]+|\.{2,}", "_", text)[:longest].strip("._-")
    return short if short == text else f"{short}-{_digest(text)}".strip("-")


def _digest(value: Any) -> str:
    return hashlib.sha256(str(value).encode()).hexdigest()[:6]


def _short(value: Any) -> str:
    return "+".join(str(item) for item in value) if isinstance(value, list) else str(value)
