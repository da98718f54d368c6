"""Quantities, and the one registry of their units, titles and bounds; names are those of data/published.csv."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

RUN_COLUMNS = ("dataset", "encoder", "attention", "projection", "variant", "layers")
Bounds = tuple[float, float]
JSD_BOUNDS = (0.0, float(np.log(2)))
CHANGE_BOUNDS = (-1.0, 1.0)  # of a difference of fractions
BOUNDS: dict[str, Bounds] = {"fraction": (0.0, 1.0), "tau-b": (-1.0, 1.0), "tokens": (0.0, np.inf)}


@dataclass(frozen=True)
class Declared:
    """The unit of a name ("1": none), how a reader reads it (None: its words), and its bounds (None: its unit's)."""

    unit: str
    title: str | None = None
    bounds: Bounds | None = None


@dataclass(frozen=True)
class Quantity:
    """Something that `measure` computes of each text, under the name of its column; making one declares the name.

    Its function is (model, batch, output) -> (batch,), or (batch, token); or a dict of such parts, each of which is
    then the column <name>_<part>. The unit is fraction, nats, tau-b, tokens, items, class, p-value, or "1"; of parts
    unit and bounds may be dicts.
    """

    name: str
    function: Callable[..., "Tensor | dict[str, Tensor]"]
    unit: str | Mapping[str, str]
    bounds: Bounds | Mapping[str, Bounds] | None = None  # the least and largest value; None: those of the unit
    title: str | None = None
    max_tokens: int | None = None  # of longer texts it is not computed
    draws: int | None = None  # the number of its random draws: a part (batch, draws) is a column of arrays

    def __post_init__(self):
        for column in self.columns:
            self.declare(column)

    @property
    def columns(self) -> list[str]:
        """The columns that it may have: those of its parts, or the one of its name."""
        return [self.name] if isinstance(self.unit, str) else [f"{self.name}_{part}" for part in self.unit]

    def __call__(self, model, batch, output) -> "Tensor | dict[str, Tensor]":
        return self.function(model, batch, output)

    def declare(self, column: str) -> None:
        """Declares one of its columns; KeyError for a part without a unit."""
        part = column.removeprefix(f"{self.name}_")
        units = {part: self.unit} if isinstance(self.unit, str) else self.unit
        if part not in units:
            raise KeyError(f"the part {part!r} of the quantity {self.name!r} has no unit; known: {', '.join(units)}")
        bounds = self.bounds.get(part) if isinstance(self.bounds, Mapping) else self.bounds
        declare(column, units[part], self.title if column == self.name else None, bounds)


TITLES = {  # of the quantities of data/published.csv, and of the parts of models and rankings
    "adversary_exact_jsd": "JSD of the optimum",
    "adversary_gradient_jsd": "JSD of the search",
    "attention_weights": "attention",
    "times": "×",
    "gradient_of_input": "gradient",
    "gradient_of_hidden": "gradient of hidden states",
    "leave_one_out_of_input": "leave-one-out",
    "leave_one_out_of_hidden": "leave-one-out of hidden states",
    "inputs_to_states_entropy": "entropy of the inputs' importance to a hidden state",
    "inputs_to_states_own_share": "a state's own token, share of the inputs' importance to it",
    **{name.lower(): name for name in ("F1", "AUC", "JSD", "TVD", "KL", "BiLSTM", "MLM", "Transformer", "MiniLM")},
    "minilm:frozen": "MiniLM, frozen",
    "self_attention_rollout": "self-attention rollout",
    "self_attention_times_gradient": "self-attention × gradient",
    "f1_drop_uniform": "change of F1, uniform",
    "f1_drop_permuted": "change of F1, permuted",
    **{f"{kind.lower()}-{part}": f"{kind}-{part}" for kind in ("FLAN", "HAN") for part in ("rnn", "conv", "noenc")},
    "product": "gradient × attention",
    "fewest": "fewest possible",
    "guide_uniform": "Uniform",  # of Wiegreffe & Pinter's table 3
    "guide_learned": "Trained MLP",
    "guide_base": "Base",
    "guide_adversary": "Adversary",
    "guide_imitation": "Imitation",
    "flip_both": "both flip",
    "flip_top_only": "only the top item",
    "flip_random_only": "only another item",
    "flip_neither": "neither",
}
# Names known before a `Quantity` declares them: scores, and values of the papers.
UNITS = {
    "fraction": "accuracy f1 auc f1_uniform f1_permuted tvd tvd_half probability label prediction "
    "flip_both flip_top_only flip_random_only flip_neither inputs_to_states_entropy token_probability_mean",
    "nats": "mutual_information_most_frequent mutual_information_random_sample",
    "tau-b": "kendall_tau_lambda_vs_entropy_of_input_importance",
    "tokens": "length",
    "1": "lambda",
}
_REGISTRY = {name: Declared(unit) for unit, names in UNITS.items() for name in names.split()}
_REGISTRY["jsd"] = Declared("nats", bounds=JSD_BOUNDS)
_REGISTRY |= {f"f1_drop_{of}": Declared("fraction", bounds=CHANGE_BOUNDS) for of in ("uniform", "permuted")}


def declare(name: str, unit: str, title: str | None = None, bounds: Bounds | None = None) -> str:
    """Makes a quantity's unit, title and bounds known by its name, returned; ValueError: it has another unit."""
    known = _REGISTRY.get(name, Declared(unit))
    if known.unit != unit:
        raise ValueError(f"{name!r} is declared in {known.unit}, not {unit}; choose another name")
    _REGISTRY[name] = Declared(unit, title or known.title, bounds or known.bounds)
    return name


def unit_of(name: str) -> str:
    """The unit of a quantity; KeyError if it is not declared."""
    if name not in _REGISTRY:
        how = f"measure it as a Quantity, or declare({name!r}, unit) from lib.quantity, with '1' for no unit"
        raise KeyError(f"the quantity {name!r} is not declared: {how}")
    return _REGISTRY[name].unit


def bounds_of(name: str) -> Bounds:
    """The least and the largest value that a quantity can have, infinite where they are not known here."""
    known = _REGISTRY.get(name, Declared("1"))
    return known.bounds or BOUNDS.get(known.unit, (-np.inf, np.inf))


def title_of(name: str) -> str:
    """A quantity, or a part of a model, for a reader: "attention / leave-one-out"; by default its words."""
    if name in _REGISTRY and _REGISTRY[name].title:
        return _REGISTRY[name].title
    if name.endswith("_significant"):
        return f"{title_of(name.removesuffix('_significant'))}, share with p ≤ .05"
    if name.startswith("kendall_tau_") and "_vs_" in name:
        return " / ".join(title_of(side) for side in name.removeprefix("kendall_tau_").split("_vs_"))
    return TITLES.get(name) or " ".join(TITLES.get(word, word) for word in name.split("_"))


def tau_name(pair: tuple[str, str]) -> str:
    """("attention", "gradient_times_input") -> "kendall_tau_attention_vs_gradient_times_input", and declares it.

    With it <name>_p, its p-value, and <name>_significant, 1 where that is at most .05. attention_weights is "attention"
    """
    first, second = ("attention" if name == "attention_weights" else name for name in pair)
    name = declare(f"kendall_tau_{first}_vs_{second}", "tau-b")
    declare(f"{name}_p", "p-value")
    declare(f"{name}_significant", "fraction")
    return name
