"""python -m tools.fetch NAME...|all, or list."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lib.datasets import files
from lib.datasets.files import DataError
from tools.fetch.install import fetch
from tools.fetch.sources import Source, sources


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 if all went well, 1 if something did not."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.fetch",
        description="Downloads datasets and word vectors from their official addresses and prepares them.",
    )
    groups = {"all": [*sources()], "vectors": [name for name, one in sources().items() if "/wiki_" in one.makes[0]]}
    names = f"all, vectors (those of the kept results), or of {', '.join(sources())}; or list: what there is"
    parser.add_argument("names", nargs="+", metavar="NAME", help=names, choices=["list", *groups, *sources()])
    parser.add_argument("--into", metavar="DIR", type=files.as_path, help="of datasets; else DATA_HOME, data/raw")
    given = parser.parse_args(arguments)
    target = files.homes(given.into)[0]
    if "list" in given.names:
        print_list([target] if given.into else files.homes(), target)
        return 0
    chosen = dict.fromkeys(name for given in given.names for name in groups.get(given, [given]))
    failed = [name for name in chosen if not fetch_and_say(sources()[name], target)]
    if failed:
        print(f"not fetched: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def fetch_and_say(source: Source, home: Path) -> bool:
    """Prints the terms of a source and fetches it; False, with the reason printed, where that fails."""
    print(f"{source.name}: {source.title}\n  licence: {source.licence}\n  please cite: {source.citation}")
    print(f"  from: {source.url} (see {source.page})", flush=True)
    try:
        made = fetch(source, home)
    except DataError as error:
        print(f"{error}\n", file=sys.stderr, flush=True)
        return False
    places = ", ".join(str(home / name) for name in source.makes)
    print(f"{'made' if made else 'already there'}: {places}\n", flush=True)
    return True


def print_list(homes: list[Path], target: Path) -> None:
    """What can be fetched, how large it is, and whether it is in a folder of datasets."""
    for source in sources().values():
        size = "?" if source.size is None else f"{source.size / 1e6:,.1f} MB"
        there = all(any((home / name).exists() for home in homes) for name in source.makes)
        print(f"{source.name:15}  {'there' if there else '-':5}  {size:>9}  {source.title}  [{source.licence}]")
    print(f"\nThe project has not yet downloaded from these addresses. What comes is put into {target}")


if __name__ == "__main__":
    sys.exit(main())
