"""The name of a report's file, which shows what is special about it and no private folder."""

import hashlib
import re
from pathlib import Path
from typing import Any

from lib.training.own_model import locate
from tools.report.parameters import APPENDIX, all_values

NAMED = ("dataset", "data", "profile", "model")  # parameters with a place of their own


def report_name(notebook: Path, values: dict[str, Any]) -> str:
    """Notebook, dataset, the profile where it is not quick, and what else is not the default."""
    defaults = all_values(notebook, {})
    settings = {"data": None, "profile": "quick", "model": None} | defaults | values
    parts = [f"{APPENDIX}-{notebook.stem}" if notebook.parent.name == APPENDIX else notebook.stem]
    if data := settings["data"]:  # two files of one name have two reports
        parts.append(f"own-{slug(Path(data).stem, 24)}-{digest(data)}")
    else:
        parts.append(slug(settings.get("dataset", "")))
    parts.append(slug(settings["profile"].replace("quick", "")))
    if model := settings["model"]:
        path, function = locate(model)
        parts.append(f"model-{slug(f'{path.stem}-{function}', 24)}-{digest(model)}")
    others = sorted(name for name in values if name not in NAMED and values[name] != defaults[name])
    parts.append(slug("-".join(f"{name}={spelled(values[name])}" for name in others)))
    return "-".join(filter(None, parts))


def slug(text: str, longest: int = 48) -> str:
    """`text` for a file name; a hash of the text follows wherever the short form is not the text itself."""
    short = re.sub(r"[^A-Za-z0-9._=+-]+|\.{2,}", "_", text)[:longest].strip("._-")
    return short if short == text else f"{short}-{digest(text)}".strip("-")


def digest(text: str) -> str:
    """Six characters that tell texts apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def spelled(value: Any) -> str:
    """A value in a file name."""
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)
