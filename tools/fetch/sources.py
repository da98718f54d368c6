"""Where each dataset and file of word vectors is published, and on what terms: the records of sources.toml."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class Address:
    """Where one file can be downloaded.

    digest  "sha256:..." or "md5:...", in hexadecimal; None: not publicly known
    size    bytes; None: not publicly known
    name    of the file; empty: the last part of the URL
    """

    url: str
    digest: str | None = None
    size: int | None = None
    name: str = ""

    @property
    def file(self) -> str:
        """The name of the downloaded file."""
        return self.name or unquote(urlsplit(self.url).path.rsplit("/", 1)[-1])


@dataclass(frozen=True)
class Source:
    """A published dataset, or file of word vectors.

    page       where its authors describe it
    makes      the folders or files it becomes in the data folder
    addresses  the official one first, then mirrors
    texts      number of texts in each split as published, as far as known
    by_hand    what a person must do where a program may not download it, or cannot
    """

    name: str
    title: str
    licence: str
    citation: str
    page: str
    makes: tuple[str, ...]
    addresses: tuple[Address, ...] = ()
    classes: tuple[str, ...] = ()
    texts: dict[str, int] = field(default_factory=dict, hash=False)
    note: str = ""
    by_hand: str = ""

    @property
    def size(self) -> int | None:
        """Bytes to download, if known for any address."""
        return next((address.size for address in self.addresses if address.size), None)


@cache
def sources() -> dict[str, Source]:
    """All records of sources.toml, by name."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {name: _source(name, **table) for name, table in tables.items()}


def _source(name: str, addresses: list[dict], **fields) -> Source:
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
    return Source(name, addresses=tuple(Address(**address) for address in addresses), **fields)
