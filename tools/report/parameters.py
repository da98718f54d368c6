"""What a notebook may be told: its parameters, their kinds and allowed values, and what a person gave for them."""

import ast
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

PROJECT = Path(__file__).resolve().parents[2]
NOTEBOOKS = PROJECT / "notebooks"
OWN = ("data", "text_column", "label_column", "split_column")
OF_TRAINING = ("encoders", "attentions", "seeds", "projection", "vectors")  # of what a model of one's own has already


class Refused(ValueError):
    """What was asked for cannot be done; the message says what was seen and what is allowed."""


@dataclass(frozen=True)
class Parameter:
    """One line of a notebook's parameters cell: `name = default  # help`.

    A help that starts "one of: a, b" closes the list of values, "some of: a, b" that of a list's elements; one that
    starts "whole numbers" or "numbers" says what an empty list's elements are, from 0 up.
    """

    name: str
    default: Any
    help: str

    @property
    def kind(self) -> str:
        """The kind of value: text, whole number, number, yes or no, list; anything where the default is None."""
        kinds = {str: "text", int: "whole number", float: "number", bool: "yes or no", list: "list", tuple: "list"}
        return kinds.get(type(self.default), "anything")

    @property
    def allowed(self) -> list[str]:
        """The closed list of values, where the help gives one; it ends at a semicolon, a bracket or a full stop."""
        given = re.match(r"(?:one|some) of:\s*(.+)", self.help.strip())
        if not given:
            return []
        listed = re.split(r"[;(]|\.\s|\.$", given[1])[0]
        return [value for value in re.split(r"[,\s|]+", listed.replace("'", "").replace('"', "")) if value]

    def read(self, given: str) -> Any:
        """The value that a person wrote, in the parameter's kind; Refused where it is of another, or not allowed."""
        readers = {"text": str, "whole number": _whole, "number": _number, "yes or no": _boolean, "list": self._list}
        try:
            value = readers.get(self.kind, _literal)(given)
        except (ValueError, SyntaxError) as error:
            raise Refused(f"parameter {self.name!r} is a {self.kind}, not {given!r}") from error
        wrong = [item for item in self._items(value) if self.allowed and str(item) not in self.allowed]
        if wrong:
            known = ", ".join(self.allowed)
            raise Refused(f"parameter {self.name!r} cannot be {wrong[0]!r}; allowed: {known}")
        if isinstance(value, list):
            self._refuse_list(value)
        return value

    def _refuse_list(self, values: list) -> None:
        """Refused where the list is empty and must not be, or has an element twice, or one that is no whole number."""
        if self.default and not values and "none: " not in self.help:
            raise Refused(f"parameter {self.name!r} is an empty list; it needs at least one element")
        for start, allowed in (("whole numbers", _is_whole), ("numbers", _is_number)):
            wrong = [value for value in values if not allowed(value)]
            if self.help.startswith(start) and wrong:
                raise Refused(f"parameter {self.name!r} is a list of {start} from 0 up; {wrong[0]!r} is none")
        twice = [value for value in values if values.count(value) > 1]
        if twice:
            raise Refused(f"parameter {self.name!r} has {twice[0]!r} {len(twice)} times; allowed: each value once")

    def _list(self, given: str) -> list:
        """`[0, 1, 2]`, `0,1,2` and `0 1 2` are the same list; its elements are of the default's kind."""
        given = given.strip()
        try:
            whole = ast.literal_eval(given)
        except (ValueError, SyntaxError):
            whole = [_literal(item) for item in re.split(r"[,\s]+", given.strip("[]()")) if item]
        values = list(whole) if isinstance(whole, list | tuple) else [whole]
        if not self.default:
            return values
        first = self.default[0]
        of_kind = Parameter(f"each of {self.name}", first, "")
        return [value if type(value) is type(first) else of_kind.read(str(value)) for value in values]

    def _items(self, value: Any) -> list:
        return value if isinstance(value, list) else [value]


def known_notebooks(folder: Path = NOTEBOOKS) -> list[str]:
    """Names of the notebooks in `folder`, without .ipynb."""
    return sorted(path.stem for path in folder.glob("*.ipynb"))


def find_notebook(name: str, folder: Path = NOTEBOOKS) -> Path:
    """The notebook of that name; Refused with the known ones otherwise."""
    known = known_notebooks(folder)
    if name not in known:
        raise Refused(f"unknown notebook {name!r}; known: {', '.join(known) or 'none'}")
    return folder / f"{name}.ipynb"


def known_parameters(notebook: Path) -> dict[str, Parameter]:
    """What papermill finds in the cell tagged `parameters`, by name."""
    import papermill

    try:
        found = papermill.inspect_notebook(str(notebook))
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, UnicodeDecodeError) as error:
        raise Refused(f"{notebook} is not a notebook: {str(error).splitlines()[0]}") from error
    return {name: Parameter(name, _default(entry["default"]), entry["help"] or "") for name, entry in found.items()}


def given_parameters(notebook: Path, given: list[tuple[str, str]]) -> dict[str, Any]:
    """The values of (name, text) pairs in the kinds of the notebook's parameters; Refused where something is not."""
    known = known_parameters(notebook)
    values = {}
    for name, text in given:
        if name not in known:
            raise Refused(f"unknown parameter {name!r} of {notebook.stem}; known: {', '.join(known) or 'none'}")
        values[name] = known[name].read(text)
        refuse_unknown(name, values[name])
    return values | own_data(values) | own_code(values)


def refuse_unknown(name: str, value: Any) -> None:
    """Refused, with the known ones, where the dataset or the projection of that name is unknown."""
    if name not in ("dataset", "projection"):
        return  # what tells is not imported for nothing: torch takes seconds
    from lib.datasets import DataError, spec
    from lib.projections import projection

    try:
        {"dataset": spec, "projection": projection}[name](value)
    except (DataError, KeyError, ValueError) as error:
        raise Refused(error.args[0]) from error


def own_data(values: dict[str, Any]) -> dict[str, Any]:
    """The parameter `data`, if given, as the notebook's kernel finds it; Refused where it is no text to be read.

    The kernel runs in the project's folder: what lies in the caller's is named in full.
    """
    given = {name: values[name] for name in OWN if values.get(name)}
    if not given:
        return {}
    from lib.datasets import DataError, own_text

    if "data" in given and "dataset" in values:
        raise Refused(f"dataset is {values['dataset']!r} and data is {given['data']!r}; allowed: one of the two")
    try:
        found = own_text(**given, data_home=values.get("data_home") or None)
    except DataError as error:
        raise Refused(error.args[0]) from error
    if not found or Path.cwd() == PROJECT:
        return {}
    return {"data": str(next(iter(found.files.values())).parent / Path(given["data"]).name)}


def own_code(values: dict[str, Any]) -> dict[str, Any]:
    """The parameter `model`, if given, as the notebook's kernel finds it; Refused where there is no such file."""
    if not values.get("model"):
        return {}
    chosen = [name for name in OF_TRAINING if values.get(name)]
    if chosen:
        raise Refused(f"model is {values['model']!r}, which is not trained here; leave {', '.join(chosen)} out")
    from lib.training.own_model import ModelError, located

    try:
        path, function = located(values["model"])
    except ModelError as error:
        raise Refused(error.args[0]) from error
    return {} if Path.cwd() == PROJECT else {"model": f"{path.resolve()}:{function}"}


def dataset_of(settings: dict[str, Any]) -> str:
    """What a report is about, in short: the dataset, or the name of one's own file."""
    return Path(str(settings["data"])).name if settings.get("data") else str(settings.get("dataset", ""))


def report_name(notebook: Path, values: dict[str, Any]) -> str:
    """A name for the report's file: notebook, dataset, the profile where it is not quick, and what else differs."""
    defaults = {name: parameter.default for name, parameter in known_parameters(notebook).items()}
    settings = defaults | values
    parts = [notebook.stem]
    if settings.get("data"):  # two files of one name have two reports
        place = hashlib.sha256(str(settings["data"]).encode()).hexdigest()[:6]
        parts.append(f"own-{slug(Path(str(settings['data'])).stem, 24)}-{place}")
    elif "dataset" in settings:
        parts.append(slug(str(settings["dataset"])))
    if settings.get("profile", "quick") != "quick":
        parts.append(slug(str(settings["profile"])))
    if settings.get("model"):  # its folder is nobody's business
        file, _, function = str(settings["model"]).rpartition(":")
        place = hashlib.sha256(str(settings["model"]).encode()).hexdigest()[:6]
        parts.append(f"model-{slug(f'{Path(file or function).stem}-{function}', 24)}-{place}")
    own = ("dataset", "data", "profile", "model")
    others = sorted(n for n, v in values.items() if n not in own and v != defaults[n])
    if others:
        parts.append(slug("-".join(f"{name}={_short(values[name])}" for name in others)))
    return "-".join(parts)


def slug(text: str, longest: int = 48) -> str:
    """`text` for a file name; a hash of the text follows wherever the short form is not the text itself."""
    short = re.sub(r"[^A-Za-z0-9._=+-]+|\.{2,}", "_", text)[:longest].strip("._-")
    if short == text:
        return short
    return f"{short}-{hashlib.sha256(text.encode()).hexdigest()[:6]}".strip("-")


def _short(value: Any) -> str:
    return "+".join(str(item) for item in value) if isinstance(value, list) else str(value)


def _default(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None


def _literal(given: str) -> Any:
    try:
        return ast.literal_eval(given)
    except (ValueError, SyntaxError):
        return given


def _is_whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < float("inf")


def _whole(given: str) -> int:
    return int(given)


def _number(given: str) -> float:
    return float(given)


def _boolean(given: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if given.lower() not in words:
        raise ValueError(given)
    return words[given.lower()]
