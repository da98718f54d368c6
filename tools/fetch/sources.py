"""Where datasets, word vectors and a pretrained model are published, and on what terms: the records of sources.toml."""

import tomllib
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from pydantic.dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A published dataset, file of word vectors, or pretrained model."""

    name: str
    title: str
    licence: str
    citation: str
    page: str  # where its authors describe it
    makes: tuple[str, ...]  # the folders or files it becomes in the data folder; by default a folder of its name
    url: str  # of its one file
    digest: str | None = None  # of that file, "sha256:..." or "md5:..."; None: not publicly known
    classes: tuple[str, ...] = ()
    note: str = ""
    beside: tuple[str, ...] = ()  # files of the same address that it needs, where that is no archive
    members: str = "*"  # the files of an archive that are of use
    words: int | None = None  # of word vectors: how many there are
    packages: tuple[str, ...] = ()  # Python packages that have the same files: an installed one is read

    @property
    def file(self) -> str:
        """The name of the downloaded file."""
        return urlsplit(self.url).path.rsplit("/", 1)[-1]


@cache
def sources() -> dict[str, Source]:
    """All records of sources.toml, by name."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {name: Source(name, **{"makes": (name,)} | table) for name, table in tables.items()}
