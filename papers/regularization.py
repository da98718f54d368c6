"""Tutek & Snajder (2020)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import NonNegativeFloat, PositiveInt
from pydantic.dataclasses import dataclass

from lib.analysis import add_entropies, measure_all, measure_versus_base
from lib.analysis.summaries import rows_where
from lib.analysis.word_states import NAME, SAMPLES, information_difference
from lib.quantity import Quantity, title_of
from lib.training import Run, Trained
from lib.training.runs import REGULARIZED
from papers.effects import model_name
from papers.paper import Paper
from papers.settings import Attentions, Distinct, Settings, Several, Values, one_of, setting

# Of what dev chooses from: below the paper's delta of 1, 10, 20, 30 and eta of .1 to 5, since dev mostly prefers less.
# In profile paper others are tried beyond the first and the last (lib.analysis.train_grid).
DELTAS = {"quick": (0.01, 0.1), "paper": (0.01, 0.03, 0.1)}
ETAS = {"quick": (0.1, 1.0), "paper": (0.01, 0.1, 1.0)}
ATTENTIONS = {"quick": ("additive",), "paper": ("additive", "dot")}
WORDS = {"quick": 100, "paper": 1000}  # whose states are clustered, and into as many clusters
LAYERS = {"quick": (2,), "paper": (2, 3)}
LAYERED = {"quick": ("base", "frozen", "tying"), "paper": ("base", "frozen", "concat", "tying", "mlm")}
CLUSTERED = ("base", "frozen", "residual", "tying", "mlm")  # table 2; not concat, whose states are of another size
FIGURE1 = ("base", "mlm")
LEARNED_TYING = "tying_with_learned_embeddings"
# Training ends when dev AUC has not risen for so many epochs; by appendix A after the 8 epochs of Jain & Wallace.
TO_THE_END = {"quick": {}, "paper": {"epochs": 100, "patience": 10}}
AIM = {"divergence": "jsd", "tvd": "full"}  # of an adversary, Eq. 6 to 8
OF_THE_BASE = ("delta", "eta", "epochs", "patience")  # options that an adversary does not share with its base


@dataclass(frozen=True)
class RegularizationSettings(Settings):
    """Beside those of every notebook: which variants, the weights of their losses, and the parts beside table 1."""

    altering: ClassVar[tuple[str, ...]] = ("projection", "frozen")

    attentions: Attentions | None = setting(None, "None: both in profile paper, additive in quick")
    papers_epochs: bool = setting(False, "8 epochs in profile paper, as in appendix A; no: until dev is no better")
    delta: Several[NonNegativeFloat] | None = setting(None, "weight of tying, for each attention; None: chosen on dev")
    eta: Several[NonNegativeFloat] | None = setting(None, "the same of the masked language model")
    frozen: Values[one_of(REGULARIZED)] = setting(("residual", "tying", "mlm"), "whose embeddings do not learn")
    lambdas: Distinct[NonNegativeFloat] = setting((0.0, 0.05, 0.2), "weights of distance in the adversary's loss")
    imitation_epochs: PositiveInt | None = setting(None, "most epochs of an adversary; None: the profile's")
    deeper: bool = setting(True, "table 6: models of more layers; no: it is left out")

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "attentions", self.attentions or ATTENTIONS[self.profile])


# --- runs


def variant(settings: Settings, name: str, attention: str, seed: int, layers: int = 1, **options) -> Run:
    """One model of the paper: the base, or one that is to keep its words; delta and eta are those of its attention."""
    options = ({} if settings.papers_epochs else TO_THE_END[settings.profile]) | options
    weight = {"tying": "delta", "mlm": "eta"}.get(name)
    if weight and (values := getattr(settings, weight)):
        place = settings.attentions.index(attention) if attention in settings.attentions else 0
        options = {weight: (values * (place + 1))[place]} | options
    if name in settings.frozen:
        options = {"embeddings": "frozen"} | options
    run = settings.run("bilstm", attention, seed, variant=name, layers=layers, recipe="tutek2020")
    return replace(run, options=tuple(options.items()))


def imitation(base: Run, strength: float, epochs: int | None = None) -> Run:
    """The adversary of a model: built as it is, trained by Eq. 6 alone, and ended by its own rule.

    Args:
        strength: lambda. epochs: the most of them; None: the profile's.
    """
    options = {name: value for name, value in base.options if name not in OF_THE_BASE}
    options |= AIM | {"lambda": strength} | ({"epochs": epochs} if epochs else {})
    return replace(base, variant="adversary", base=base, options=tuple(options.items()))


def tuned(settings: Settings, name: str, option: str, values: Sequence[float]) -> list[Run]:
    """A variant with every value of its weight, or with the one that is given: for each attention, one seed."""
    seed, choices = settings.seeds_or()[0], [{}] if getattr(settings, option) else [{option: value} for value in values]
    return [variant(settings, name, each, seed, **choice) for each, choice in product(settings.attentions, choices)]


def delta_sweep(settings: Settings) -> list[Run]:
    """Tying with every delta."""
    return tuned(settings, "tying", "delta", DELTAS[settings.profile])


def eta_sweep(settings: Settings) -> list[Run]:
    """The masked language model with every eta."""
    return tuned(settings, "mlm", "eta", ETAS[settings.profile])


def variants(settings: Settings) -> list[Run]:
    """Table 1: every variant with every attention; `frozen`, not in the paper, shows what freezing alone does."""
    parts = product(settings.attentions, REGULARIZED, settings.seeds_or())
    return [variant(settings, name, attention, seed) for attention, name, seed in parts]


def learned(settings: Settings) -> list[Run]:
    """A control: tying with embeddings that learn, where those of table 1 are fixed."""
    attentions = settings.attentions if "tying" in settings.frozen else ()
    parts = product(attentions, settings.first_seeds())
    return [variant(replace(settings, frozen=()), "tying", *part) for part in parts]


def layers(settings: Settings) -> list[Run]:
    """Table 6: more than one layer, with the first attention."""
    counts = LAYERS[settings.profile] if settings.deeper else ()
    parts = product(counts, LAYERED[settings.profile], settings.first_seeds())
    return [variant(settings, name, settings.attentions[0], seed, count) for count, name, seed in parts]


def adversaries(settings: Settings) -> list[Run]:
    """Figure 1: models that imitate those of FIGURE1 and attend elsewhere, for each lambda."""
    parts = product(FIGURE1, settings.first_seeds(), settings.lambdas)
    return [
        imitation(variant(settings, name, settings.attentions[0], seed), strength, settings.imitation_epochs)
        for name, seed, strength in parts
    ]


def dot_initialisation(settings: Settings) -> list[Run]:
    """Appendix C: the base with dot attention, its query drawn from N(0, 1) or as torch initialises it."""
    parts = product(({}, {"query_init": "default"}), settings.first_seeds())
    return [variant(settings, "base", "dot", seed, **start) for start, seed in parts]


# --- what is measured


def measure(trained: Sequence[Trained], learned: Sequence[Trained], quantities: Sequence[Quantity]) -> pd.DataFrame:
    """The models of table 1; tying with embeddings that learn is a variant of its own."""
    rows = [measure_all(trained, quantities)]
    rows += [measure_all(learned, quantities).assign(variant=LEARNED_TYING)] if learned else []
    return pd.concat(rows, ignore_index=True)


def with_one_layer(deeper: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Table 6: the models of more layers, below the same ones of one layer."""
    return pd.concat([measured.merge(deeper[["attention", "variant"]].drop_duplicates()), deeper], ignore_index=True)


def measure_imitations(imitations: Sequence[Trained]) -> pd.DataFrame:
    """Figure 1: how far each adversary is from the model that it imitates; the rows have that model's variant."""
    bases = [one.base for one in imitations]
    rows = measure_versus_base(imitations, bases)
    return rows.assign(variant=np.repeat([base.run.variant for base in bases], len(rows) // len(bases)))


def start_and_end(queries: Sequence[Trained]) -> pd.DataFrame:
    """Appendix C: the attention's entropy on dev after the last epoch, by the start of its query."""
    rows = [(one.run.option("query_init"), one.run.seed, one.history[-1]["dev_attention_entropy"]) for one in queries]
    return pd.DataFrame(rows, columns=["start", "seed", "entropy"])


# --- what its findings read


def tables(measured: pd.DataFrame, information: pd.DataFrame, frozen: Sequence[str] = ()) -> dict[str, pd.DataFrame]:
    """What the findings read.

    Args:
        measured: of `measure` with lib.interventions.substituted, token_probability_mean and the attention; with the
            rationale's average precision where there is one.
        information: rows of lib.analysis.information. frozen: the variants whose embeddings do not learn.
    """
    both = add_entropies(measured, ["attention"])
    right = both[both["label"] == both["prediction"]]
    control = information["variant"].isin(frozen).map({True: "frozen", False: "base"})
    return {"measured": both, "answers": both, "right": right, "information": information.assign(control=control)}


def information(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """T3: mutual information of words and states, of a variant less its control: the base with as fixed embeddings."""
    known, measured = tables["information"], tables["measured"]
    where = {"attention": measured["attention"].iloc[0], "layers": 1}
    for pair in known[["variant", "control"]].drop_duplicates().itertuples(index=False, name=None):
        if pair[0] in ("base", "frozen"):
            continue
        effect = information_difference(known, NAME + SAMPLES[0], pair)
        groups = [rows_where(measured, where | {"variant": name}) for name in pair]
        yield {"model": f"{model_name([pair[0], where['attention']])}, against {title_of(pair[1])}"}, groups, effect


PAPER = Paper(
    "regularization",
    "tutek2020",
    RegularizationSettings,
    (delta_sweep, eta_sweep, variants, learned, layers, adversaries, dot_initialisation),
    swept={"delta": delta_sweep, "eta": eta_sweep},
)
