"""What a published dataset is to be fetched from: its addresses, what is publicly known of the file, and its terms."""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

GIBI = 2**30


@dataclass(frozen=True)
class Address:
    """One place of a file.

    digest  "sha256:..." or "md5:...", in hexadecimal; None: not publicly known
    size    bytes; None: not publicly known
    name    of the file; empty: the last part of the address
    tried   whether this project has downloaded from it
    """

    url: str
    digest: str | None = None
    size: int | None = None
    name: str = ""
    tried: bool = False

    @property
    def file(self) -> str:
        return self.name or unquote(urlsplit(self.url).path.rsplit("/", 1)[-1])


@dataclass(frozen=True)
class Source:
    """A published dataset, or a file of word vectors.

    addresses  the official one first, then its mirrors
    makes      what stands in the home of data afterwards: folders, or files
    texts      how many texts each split has as published, as far as that is known
    members    which files of the archive are needed, as patterns
    unpacked   bytes that the archive may have when unpacked, at most
    by_hand    what a person must do where a program may not, or cannot
    """

    name: str
    title: str
    task: str
    licence: str
    citation: str
    page: str
    addresses: tuple[Address, ...]
    makes: tuple[str, ...]
    classes: tuple[str, ...] = ()
    texts: dict[str, int] = field(default_factory=dict, hash=False)
    members: tuple[str, ...] = ("*",)
    unpacked: int = GIBI
    note: str = ""
    by_hand: str = ""

    @property
    def size(self) -> int | None:
        """Bytes to download, where any address tells."""
        return next((address.size for address in self.addresses if address.size), None)
