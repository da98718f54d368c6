"""Files that are there whole or not at all, whatever happens while they are written."""

import json
import os
import tempfile
from pathlib import Path


def write_text(path: Path, text: str) -> Path:
    """Writes a file so that nobody ever sees half of it, and a full disk leaves nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, suffix=".part", delete=False) as file:
        part = Path(file.name)
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            part.unlink()
            raise
    part.chmod(0o644)
    return part.replace(path)


def write_json(path: Path, value: object) -> Path:
    """The same of a value as JSON, its keys in order."""
    return write_text(path, json.dumps(value, indent=1, sort_keys=True, default=str) + "\n")
