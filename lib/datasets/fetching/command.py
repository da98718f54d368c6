"""python -m lib.datasets fetch NAME...|all, list, verify."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lib.datasets import files
from lib.datasets.fetching.by_hand import BY_HAND
from lib.datasets.fetching.download import Patience
from lib.datasets.fetching.placing import fetch, problems, target
from lib.datasets.fetching.registry import SOURCES
from lib.datasets.fetching.sources import Source
from lib.datasets.files import DataError

Say = Callable[[str], None]


def main(arguments: Sequence[str] | None = None, patience: Patience | None = None) -> int:
    """Runs one command; 0 if all went well, 1 if something did not, 130 if a person stopped it."""
    chosen = _parser().parse_args(arguments)
    try:
        return chosen.run(chosen, patience)
    except KeyboardInterrupt:
        print("stopped; what has arrived is kept, run it again to go on from there", file=sys.stderr)
        return 130
    except DataError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lib.datasets", description="Datasets and word vectors by name.")
    commands = parser.add_subparsers(required=True, metavar="fetch|list|verify")
    fetching = commands.add_parser("fetch", help="download from the official address and prepare")
    fetching.add_argument("names", nargs="+", metavar="NAME", help=f"all, or of {', '.join(SOURCES)}")
    fetching.add_argument("--again", action="store_true", help="also what is there already")
    fetching.add_argument("--keep", action="store_true", help="keep the downloaded archives")
    fetching.set_defaults(run=_fetch)
    listing = commands.add_parser("list", help="what can be fetched, and what is there")
    listing.set_defaults(run=_list)
    verifying = commands.add_parser("verify", help="whether what was fetched is unchanged")
    verifying.add_argument("names", nargs="*", metavar="NAME", help="nothing: all")
    verifying.set_defaults(run=_verify)
    for one in (fetching, listing, verifying):
        one.add_argument("--into", metavar="DIR", help="the folder of datasets (DATA_HOME if set, else data/raw)")
    return parser


def _named(names: Sequence[str]) -> list[Source]:
    """The sources of these names; "all", or none, for those that a program can fetch."""
    known = SOURCES | BY_HAND
    unknown = [name for name in names if name not in known and name != "all"]
    if unknown:
        raise DataError(f"nothing is known to fetch under {unknown[0][:40]!r}; known: all, {', '.join(known)}")
    return list(SOURCES.values()) if not names or "all" in names else [known[name] for name in dict.fromkeys(names)]


def _fetch(chosen: argparse.Namespace, patience: Patience | None) -> int:
    home, failed = target(chosen.into), []
    for one in _named(chosen.names):
        print(about(one), flush=True)
        try:
            done = _brought(one, home) if one.name in BY_HAND else fetch(one, home, chosen.again, chosen.keep, patience)
        except DataError as error:
            failed.append(one.name)
            print(f"{error}\n", file=sys.stderr, flush=True)
            continue
        places = ", ".join(str(home / name) for name in one.makes)
        print(f"{'made' if done else 'already there'}: {places}\n", flush=True)
    if failed:
        print(f"not fetched: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _brought(one: Source, home: Path) -> bool:
    """False, since nothing is to be done, where a person has put it there; DataError that says how, where not."""
    if not all((home / name).exists() for name in one.makes):
        raise DataError(f"{one.name} is not fetched by a program. {one.by_hand} of {home}")
    return False


def about(one: Source) -> str:
    """What is fetched, from where and under which terms."""
    lines = [
        f"{one.name}: {one.title}",
        f"  licence: {one.licence}",
        f"  please cite: {one.citation}",
        f"  from: {one.addresses[0].url} (see {one.page})" if one.addresses else f"  from: {one.page}",
    ]
    return "\n".join([*lines, *([f"  by hand: {one.by_hand}"] if one.by_hand and one.addresses else [])])


def _list(chosen: argparse.Namespace, patience: Patience | None) -> int:
    homes = [target(chosen.into)] if chosen.into else files.homes()
    width = max(map(len, SOURCES))
    for one in (SOURCES | BY_HAND).values():
        size = _size(one.size)
        there = "there" if all(_found(homes, name) for name in one.makes) else "-"
        tried = "" if any(address.tried for address in one.addresses) else "; untried"
        tried = "; by hand" if one.name in BY_HAND else tried
        print(f"{one.name:{width}}  {there:5}  {size:>9}  {one.title}  [{one.licence}{tried}]")
    print(
        "\nuntried: the project has not yet downloaded from these addresses.\n"
        f"by hand: not for a program; fetch says how it is had.\nfetch puts the others into {homes[0]}"
    )
    return 0


def _size(size: int | None) -> str:
    return "?" if size is None else f"{size / 1e6:,.1f} MB"


def _found(homes: list[Path], name: str) -> Path | None:
    return next((home / name for home in homes if (home / name).exists()), None)


def _verify(chosen: argparse.Namespace, patience: Patience | None) -> int:
    homes = [target(chosen.into)] if chosen.into else files.homes()
    wrong = 0
    for one in _named(chosen.names):
        for name in one.makes:
            product = _found(homes, name)
            found = problems(product) if product else None
            if product is None:
                said, missing = "not there", bool(chosen.names) and "all" not in chosen.names
                wrong += missing
            elif found is None:
                said = f"{product} was not fetched by this program: nothing to compare"
            else:
                said = f"{product}: {'; '.join(found) or 'unchanged'}"
                wrong += bool(found)
            if product or chosen.names:
                print(f"{name}: {said}")
    return 1 if wrong else 0
