"""Downloads datasets, word vectors and minilm, a pretrained model, from their official addresses."""

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
    parser = argparse.ArgumentParser(prog="python -m tools.fetch", description=__doc__)
    groups = {"all": [*sources()], "vectors": [name for name, one in sources().items() if "/wiki_" in one.makes[0]]}
    names = f"all, vectors (those of the kept results), or of {', '.join(sources())}"
    parser.add_argument("names", nargs="+", metavar="NAME", help=names, choices=[*groups, *sources()])
    parser.add_argument("--into", metavar="DIR", type=files.as_path, help="of datasets; else DATA_HOME, data/raw")
    given = parser.parse_args(arguments)
    target = files.homes(given.into)[0]
    chosen = dict.fromkeys(name for given in given.names for name in groups.get(given, [given]))
    return int(False in [fetch_and_say(sources()[name], target) for name in chosen])


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


if __name__ == "__main__":
    sys.exit(main())
