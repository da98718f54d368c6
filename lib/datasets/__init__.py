"""Datasets by name: `load("sst")` is a Corpus, prepared as the papers do."""

from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from pydantic import ValidationError

from lib import profiles
from lib.datasets import altered, files, own
from lib.datasets.assembly import Spec, assemble
from lib.datasets.batches import collate
from lib.datasets.card import about, card, sizes
from lib.datasets.corpus import Corpus, Instance, Split, Vocabulary
from lib.datasets.files import DataError
from lib.datasets.own import Own, own_text
from lib.datasets.questions import question_and_answer
from lib.datasets.subwords import in_subwords_of

_modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
DATASETS = {spec.name: spec for module in _modules for spec in getattr(module, "SPECS", ())}


def load(name: str, profile: str = "paper", data_home: str | Path | None = None, **options) -> Corpus:
    """The dataset of that name.

    Args:
        name: one of DATASETS, with dials where it has any (`spec`), or your own text by `own_text`.
        profile: how much of it is read (lib.profiles).
        data_home: the folder of datasets; None or "": $DATA_HOME if set. Then data/raw of the project.
        options: what the dataset offers (`DATASETS[name].options`).
    Raises:
        DataError: unknown name, profile or option; missing or damaged data.
    """
    chosen = spec(name)
    if profile not in profiles.PROFILES:
        raise DataError(f"unknown profile {profile!r}; known: {', '.join(profiles.PROFILES)}")
    options = _settled(chosen, options)
    folder = files.find(chosen.folder, data_home) if chosen.folder else None
    corpus = assemble(chosen, chosen.read(chosen, folder, options), profiles.PROFILES[profile])
    return in_subwords_of(corpus, chosen.subwords, data_home) if chosen.subwords else corpus


def spec(name: str) -> Spec:
    """How the dataset of that name is prepared; DataError with what is known, or allowed, otherwise.

    Options of made-up texts may follow the name as its dials, which are then their defaults:
    "planted:negation=0,noise=0.1"; of texts without sentences or questions a shortcut (lib.datasets.altered),
    "sst:shortcut=pair", and the pretrained model whose subwords they are read in, "sst:subwords=minilm".
    """
    if isinstance(name, Own):
        return own.spec_of(name)
    plain, colon, dials = str(name).partition(":")
    if plain not in DATASETS:
        raise DataError(f"unknown dataset {name!r}; known: {', '.join(DATASETS)}")
    chosen, given = DATASETS[plain], dict(part.partition("=")[::2] for part in dials.split(",") if colon)
    if "shortcut" in given:
        chosen = altered.altered(chosen, given.pop("shortcut"))
    if "subwords" in given:
        chosen = replace(chosen, subwords=given.pop("subwords"))
    if chosen.subwords and chosen.asks:
        raise DataError(f"the dataset {plain!r} asks questions, which pretrained models do not read here")
    if given and not chosen.dials:
        raise DataError(f"the dataset {plain!r} has no dials, but {', '.join(given)} follows its name")
    return replace(chosen, name=name, options=_settled(chosen, given))


def with_dials(name: str, *dials: str) -> str:
    """A dataset's name with more dials: ("planted", "cues=1") is "planted:cues=1"."""
    plain, _, own = name.partition(":")
    return f"{plain}:{','.join(filter(None, (own, *dials)))}"


def in_subwords(name: str, model: str) -> str:
    """A dataset's name, one's own too, in the subwords of a pretrained model."""
    if spec(name).subwords:
        return name
    if isinstance(name, Own):
        return own.read_as(name.path, name.reading._replace(subwords=model))
    return with_dials(name, f"subwords={model}")


def _settled(chosen: Spec, given: dict) -> dict:
    """A dataset's options, those that are given in place of its own; DataError where one is unknown or out of range."""
    for option in given.keys() - chosen.options.keys():
        known = ", ".join(chosen.options) or "none"
        raise DataError(f"unknown option {option!r} of the dataset {chosen.name!r}; known: {known}")
    try:
        return asdict(chosen.dials(**chosen.options | given)) if chosen.dials else chosen.options | given
    except ValidationError as error:
        first = error.errors()[0]
        raise DataError(f"dataset {chosen.name!r}: {first['loc'][0]} is {first['input']!r}; {first['msg']}") from None


def tokens_shown(corpus: Corpus, instance: Instance, show_text: bool = True) -> tuple[str, ...]:
    """A text's tokens as a reader may see them: where words are hidden, "[1]", "[2]", ..."""
    return instance.tokens if show_text else tuple(f"[{place + 1}]" for place in range(len(instance.tokens)))
