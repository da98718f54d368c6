"""What lies on the disk: whether there is room, what a file's checksum is, and what has arrived of a download."""

import contextlib
import errno
import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lib.datasets.files import DataError

SPARE = 2**26  # bytes that stay free


@dataclass(frozen=True)
class Partial:
    """What has arrived of a file so far."""

    final: Path

    @property
    def path(self) -> Path:
        return self.final.with_name(f"{self.final.name}.partial")

    @property
    def told(self) -> Path:
        return self.final.with_name(f"{self.final.name}.partial.json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def origin(self) -> dict:
        """url, validator and total of the answer that it is the beginning of; nothing where that is not known."""
        try:
            found = json.loads(self.told.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def begin(self, url: str, validator: str | None, total: int | None) -> None:
        """Forgets what there was, before the first byte of another answer."""
        self.path.unlink(missing_ok=True)
        passing = self.told.with_name(f"{self.told.name}.new")
        passing.write_text(json.dumps({"url": url, "validator": validator, "total": total}), encoding="utf-8")
        passing.replace(self.told)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.told.unlink(missing_ok=True)


def digest_of(path: Path, kind: str = "sha256") -> str:
    """ "sha256:..." of a file's content."""
    with path.open("rb") as file:
        return f"{kind}:{hashlib.file_digest(file, kind).hexdigest()}"


def digest_mismatch(path: Path, expected: str | None) -> str:
    """What differs from the expected digest, in words; empty where nothing does or none is expected."""
    found = digest_of(path, expected.partition(":")[0]) if expected else None
    return "" if found == expected else f"{path.stat().st_size:,} bytes with {found}, expected {expected}"


def refuse_full_disk(folder: Path, needed: int, what: Path) -> None:
    """Raises DataError where `needed` bytes and a little more do not fit on the disk of a folder."""
    free = shutil.disk_usage(folder).free
    if needed > 0 and free < needed + SPARE:
        raise DataError(
            f"the disk of {folder} has {free:,} bytes free, and {what.name} needs {needed + SPARE:,}; free some space, "
            "or choose another place with --into"
        )


@contextlib.contextmanager
def told_of_full_disk(what: Path) -> Iterator[None]:
    """Turns a full disk, or one that cannot be written, into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DataError(
                f"the disk of {what.parent} is full while {what.name} is written; free some space and run it again, or "
                "choose another place with --into"
            ) from None
        raise DataError(f"{what} cannot be written: {error.strerror or error}") from None
