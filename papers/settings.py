"""The settings of a notebook: its parameters by name, checked once, None being the profile's; a paper adds its own."""

import re
from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Self, TypeVar

import torch
from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, PositiveInt, ValidationError
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

from lib.datasets import Own, own_text, spec
from lib.datasets.assembly import SIZES
from lib.datasets.pretrained import is_pretrained
from lib.models import ATTENTIONS
from lib.models.encoders import known_encoder
from lib.profiles import PROFILES
from lib.projections import projection
from lib.training import Run
from lib.training.runs import readable

T = TypeVar("T")


def device_kind(device: str) -> str:
    """cpu or cuda: what `device` names, also where there is no GPU to plan for one, or for "auto" what there is."""
    return "cuda" if device == "cuda" or (device == "auto" and torch.cuda.is_available()) else "cpu"


def one_of(names: Collection[str]) -> Any:
    """The type of a setting that is one of these names; a registry's are also those that are added to it later."""

    def check(value: str) -> str:
        if value not in names:
            raise ValueError(f"allowed: {', '.join(names)}")
        return value

    return Annotated[str, AfterValidator(check)]


def split_list(given: Any) -> Any:
    """A list, or its text: `[0, 1]`, `0,1` or `0 1`; one value is a list of itself."""
    if isinstance(given, str):
        return re.findall(r"[^\s,()\[\]'\"]+", given)
    return given if isinstance(given, list | tuple) else [given]


def each_once(values: tuple) -> tuple:
    """The values, or ValueError where one comes twice."""
    if twice := [value for value in values if values.count(value) > 1]:
        raise ValueError(f"{twice[0]!r} is there {len(twice)} times; allowed: each value once")
    return values


def count_to_seeds(given: Any) -> Any:
    """The seeds that a number, or its text, stands for: 3 is 0, 1 and 2, and 0 is the seed 0; a list is itself."""
    if not re.fullmatch(r"\s*\d+\s*", str(given)):
        return given
    if int(given) > 100:
        raise ValueError(f"that is how many; for that seed alone write [{given}]")
    return list(range(int(given) or 1))


Several = Annotated[tuple[T, ...], BeforeValidator(split_list), Field(min_length=1)]
Distinct = Annotated[Several[T], AfterValidator(each_once)]
Encoder = Annotated[str, AfterValidator(known_encoder)]
Encoders = Distinct[Encoder]
Attentions = Distinct[one_of(ATTENTIONS)]
Projection = Annotated[str, AfterValidator(lambda name: projection(name) and name)]
Name = Annotated[str, PlainValidator(lambda name: spec(name) and name)]  # or one's own text, which stays what it is
Dataset = Annotated[Name, Field(description="one of those in docs/data.md")]
ABOUT_MODEL = "your own model instead of ours: a Hugging Face folder, or my_model.py:function, a file that is run"
OwnModel = Annotated[str | None, Field(description=ABOUT_MODEL)]


def setting(default: Any, help: str) -> Any:
    """A setting with its default, and what it is, for a reader of the notebook's parameters cell."""
    return Field(default, description=help)


@dataclass(frozen=True, config={"allow_inf_nan": False})
class Settings:
    """The settings that all notebooks share. Those of a paper extend them, as do those of a notebook of your own."""

    answers_questions: ClassVar[bool] = False  # whether the paper has models for texts with a question

    dataset: Dataset = "planted"
    data: str | None = setting(None, "your own text instead: a .csv, .tsv, .txt or .jsonl, each also .gz")
    text_column: str | None = setting(None, "its column of texts, or two: premise,hypothesis; None: that called text")
    label_column: str | None = setting(None, "its column of labels; None: the one called label")
    split_column: str | None = setting(None, "of train, dev and test; None: the one called split, or at random")
    skip_incomplete: bool = setting(False, "leaves out the records of data without a text or a label")
    most_tokens: PositiveInt | None = setting(None, "longer texts of data are cut there; None: none is")
    train_texts: PositiveInt | None = setting(None, "most texts of train and dev, drawn at random; None: the profile's")
    test_texts: PositiveInt | None = setting(None, "the most texts of test, drawn at random; None: the profile's")
    profile: one_of(PROFILES) = setting("quick", "quick: minutes on two cores; paper: the paper's sizes")
    seeds: Annotated[Distinct[Annotated[int, Field(ge=0, lt=2**63)]], BeforeValidator(count_to_seeds)] | None = setting(
        None, "how many, or a list of them; None: as many as the profile has"
    )
    projection: Projection = setting(
        "softmax", "of attention: softmax, sparsemax, sparsegen:NUMBER, entmax:NUMBER or entmax:learned"
    )
    vectors: str = setting("auto", "auto, random, or a file of word vectors")
    show_text: bool = setting(True, "False: words are hidden on the page")
    device: one_of(("auto", "cpu", "cuda")) = setting("auto", "auto: a GPU where there is one")
    data_home: str | None = setting(None, "folder of the datasets; None: $DATA_HOME")

    def __post_init__(self):
        if not isinstance(self.dataset, Own):
            columns = (self.text_column, self.label_column, self.split_column)
            own = own_text(self.data, *columns, self.data_home, self.skip_incomplete, self.most_tokens)
            object.__setattr__(self, "dataset", own or self.dataset)
        if wrong := [name for name in SIZES if getattr(self, name) and name not in spec(self.dataset).options]:
            raise ValueError(f"{self.dataset!r} does not take {wrong[0]}; leave it out")
        encoders = (*(getattr(self, "encoders", None) or ()), getattr(self, "encoder", ""))
        object.__setattr__(self, "dataset", readable(self.dataset, encoders))
        if spec(self.dataset).asks and not self.answers_questions:
            raise ValueError(f"{self.dataset!r} asks questions, which only the models of 'correlation' answer")

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """The settings among `values`, which may have other names too: `Settings.of(globals())` in a notebook.

        Raises:
            ValueError: a value of another type, or not allowed, with what is, in a sentence; KeyError: a name that a
                registry lacks, with those that it has.
        """
        try:
            return cls(**{name: values[name] for name in described(cls) if name in values})
        except ValidationError as error:  # the first thing that is wrong: which parameter, what was seen, what may be
            first, why = error.errors()[0], error.errors()[0]["msg"].removeprefix("Value error, ")
            if first["loc"]:  # else it is about several together
                name, *element = first["loc"]
                verb = "has" if element else "is"
                why = f"parameter {name!r} {verb} {first['input']!r}; {why[0].lower()}{why[1:]}"
            raise ValueError(why) from None

    def seeds_or(self, number: int | None = None) -> list[int]:
        """The seeds; where none were chosen 0 to `number` - 1, or as many as the profile has."""
        return list(self.seeds or range(number or PROFILES[self.profile].seeds))

    def first_seeds(self) -> list[int]:
        """The seeds; in profile quick the first alone."""
        return self.seeds_or()[: 1 if self.profile == "quick" else None]

    def run(self, encoder: str, attention: str, seed: int, **more) -> Run:
        """A run of these settings; `more` are other fields of Run. Pretrained encoders are trained alike everywhere."""
        texts = ((name, value) for name in SIZES if (value := getattr(self, name)))
        given = {"projection": self.projection, "profile": self.profile, "vectors": self.vectors}
        given |= more | {"options": (*texts, *more.get("options", ()))}
        given |= {"recipe": "jain2019"} if is_pretrained(encoder) else {}
        return Run(self.dataset, encoder, attention, seed=seed, device_kind=device_kind(self.device), **given)


def described(settings: type[Settings]) -> dict[str, FieldInfo]:
    """Each setting by its name: its `default` and its `description`."""
    return settings.__pydantic_fields__
