"""python -m tools.fetch NAME...|all, or list."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lib.datasets import files
from lib.datasets.files import DataError
from lib.datasets.mimic import ABOUT, ACCESS, PAGE
from tools.fetch.install import data_folder, fetch
from tools.fetch.sources import Source, sources


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 if all went well, 1 if something did not, 130 if it was interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.fetch",
        description="Downloads datasets and word vectors from their official addresses and prepares them.",
    )
    names = f"all, or of {', '.join(known())}; or list: what there is"
    parser.add_argument("names", nargs="+", metavar="NAME", help=names)
    parser.add_argument("--again", action="store_true", help="fetch also what is there already")
    parser.add_argument("--into", metavar="DIR", help="the folder of datasets (DATA_HOME if set, else data/raw)")
    chosen = parser.parse_args(arguments)
    target = data_folder(chosen.into)
    try:
        if chosen.names == ["list"]:
            return _list([target] if chosen.into else files.homes(), target)
        failed = [source.name for source in _named(chosen.names) if not _fetched(source, target, chosen.again)]
    except KeyboardInterrupt:
        print("stopped; run it again", file=sys.stderr)
        return 130
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    if failed:
        print(f"not fetched: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def known() -> dict[str, Source]:
    """All sources, with MIMIC-III, which is given only on request, to a person."""
    title = "MIMIC-III discharge summaries: diabetes and anemia"
    mimic = Source("mimic", title, ABOUT["licence"], ABOUT["citation"], PAGE, ("mimic",), by_hand=ACCESS)
    return sources() | {"mimic": mimic}


def _named(names: Sequence[str]) -> list[Source]:
    """The sources of these names; "all" are those with an address."""
    unknown = [name for name in names if name not in known() and name != "all"]
    if unknown:
        raise DataError(f"nothing is known to fetch under {unknown[0][:40]!r}; known: all, {', '.join(known())}")
    if "all" in names:
        return list(sources().values())
    return [known()[name] for name in dict.fromkeys(names)]


def _fetched(source: Source, home: Path, again: bool) -> bool:
    """Prints the terms of a source and fetches it; False, with the reason printed, where that fails."""
    by_hand = f"\n  by hand: {source.by_hand}" if source.by_hand and source.addresses else ""
    start = f"{source.addresses[0].url} (see {source.page})" if source.addresses else source.page
    about = f"  licence: {source.licence}\n  please cite: {source.citation}\n  from: {start}{by_hand}"
    print(f"{source.name}: {source.title}\n{about}", flush=True)
    try:
        if not source.addresses and not all((home / name).exists() for name in source.makes):
            raise DataError(f"{source.name} is not fetched by a program. {source.by_hand} of {home}")
        made = bool(source.addresses) and fetch(source, home, again)
    except DataError as error:
        print(f"{error}\n", file=sys.stderr, flush=True)
        return False
    places = ", ".join(str(home / name) for name in source.makes)
    print(f"{'made' if made else 'already there'}: {places}\n", flush=True)
    return True


def _list(homes: list[Path], target: Path) -> int:
    for one in known().values():
        size = "?" if one.size is None else f"{one.size / 1e6:,.1f} MB"
        there = "there" if all(any((home / name).exists() for home in homes) for name in one.makes) else "-"
        terms = one.licence + ("" if one.addresses else "; by hand")
        print(f"{one.name:15}  {there:5}  {size:>9}  {one.title}  [{terms}]")
    print(
        "\nThe project has not yet downloaded from these addresses.\n"
        f"by hand: not for a program; its name explains how to get it.\nthe others are put into {target}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
