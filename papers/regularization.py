"""Tutek & Snajder (2020)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated, ClassVar

import pandas as pd
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass

from lib.analysis import add_entropies
from lib.analysis.summaries import rows_where
from lib.analysis.word_states import NAME, SAMPLES, information_difference
from lib.quantity import declare, title_of
from lib.training import Run
from lib.training.runs import REGULARIZED
from papers.effects import model_name
from papers.paper import Paper
from papers.settings import Attentions, Distinct, Settings, Several, Values, one_of, setting

KEY = "tutek2020"


# Runs

# The paper tries delta 1, 10, 20 and 30, and eta .1, .3, 1, 3 and 5; its text does not say which goes with which
# dataset. With word vectors that are longer than hidden states can be, dev mostly prefers less. In `paper`,
# while dev's best is the first or the last, others are tried beyond (lib.analysis.train_grid).
DELTAS = {"quick": (0.01, 0.1), "paper": (0.01, 0.03, 0.1)}
ETAS = {"quick": (0.1, 1.0), "paper": (0.01, 0.1, 1.0)}
DELTA, ETA = 10.0, 1.0  # where no other was chosen on dev
ATTENTIONS = {"quick": ("additive",), "paper": ("additive", "dot")}  # dot's query start is shown in both
WORDS = {"quick": 100, "paper": 1000}  # whose states are clustered, and into as many clusters
LAYERS = {"quick": (2,), "paper": (2, 3)}
LAYERED = {"quick": ("base", "frozen", "tying"), "paper": ("base", "frozen", "concat", "tying", "mlm")}
LEARNED = ("tying",)  # also trained with embeddings that learn; those of mlm are fixed in the paper
SHORTENED = {"quick": ("base",), "paper": ("base", "mlm")}  # also trained from shorter word vectors
FIGURE1 = ("base", "mlm")
# Training ends when dev AUC has not risen for that many epochs, at the latest after so many. By appendix A it
# takes the 8 epochs of Jain & Wallace, the profile's number.
TO_THE_END = {"quick": {}, "paper": {"epochs": 100, "patience": 10}}
# Of the adversary, whose divergence is bounded here (Eq. 6); the paper gives none.
# With lambda 0 it only imitates: the cost of imitation alone.
LAMBDAS = (0.0, 0.05, 0.2)


# Of adversaries that imitate a model under a bounded divergence: TVD of Eq. 7, over both classes, and JSD of Eq. 8.
AIM = {"divergence": "jsd", "tvd": "full"}
OF_THE_BASE = ("delta", "eta", "epochs", "patience")  # its own objective, and when it ends


@dataclass(frozen=True)
class RegularizationSettings(Settings):
    """Beside those of every notebook: which variants, the weights of their losses, and the parts beside table 1."""

    altering: ClassVar[tuple[str, ...]] = ("projection", "frozen", "embedding_labels")

    attentions: Attentions | None = setting(None, "None: both in profile paper, additive in quick")
    papers_epochs: bool = setting(
        False, "8 epochs in profile paper, as the code that it builds on; no: until dev is no better"
    )
    delta: Several[NonNegativeFloat] | None = setting(
        None, "weight of tying, for each attention or one for all; None: chosen on dev"
    )
    eta: Several[NonNegativeFloat] | None = setting(None, "the same of the masked language model")
    frozen: Values[one_of(REGULARIZED)] = setting(
        ("residual", "tying", "mlm"), "the variants whose embeddings do not learn"
    )
    lambdas: Distinct[NonNegativeFloat] | None = setting(
        None, "weights of distance in the adversary's loss; None: 0, .05 and .2"
    )
    imitation_epochs: PositiveInt | None = setting(
        None, "most epochs of a trained adversary; None: 300 in profile paper, 5 in quick"
    )
    deeper: bool = setting(True, "table 6: models of more layers; no: it is left out")
    layers: Distinct[Annotated[int, Field(ge=2)]] | None = setting(None, "of those models; None: the profile's")
    words: PositiveInt | None = setting(
        None, "words whose states are clustered, and clusters; None: as many as the profile has"
    )
    shorter_vectors: bool = setting(True, "section 5: a control from shorter word vectors; no: it is left out")
    vector_scale: PositiveFloat = setting(0.3, "of that control: word vectors times this")
    embedding_labels: one_of(("clusters", "words")) = setting("clusters", "clusters, as in the paper, or words")

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "attentions", self.attentions or ATTENTIONS[self.profile])


def imitation(base: Run, strength: float, epochs: int | None = None) -> Run:
    """The adversary of a model: built as it is, trained by Eq. 6 alone, and ended by its own rule.

    Args:
        strength: lambda. epochs: the most of them; None: the profile's.
    """
    options = {name: value for name, value in base.options if name not in OF_THE_BASE}
    options |= AIM | {"lambda": strength} | ({"epochs": epochs} if epochs else {})
    return replace(base, variant="adversary", base=base, options=tuple(options.items()))


def variant(settings: Settings, name: str, attention: str, seed: int, layers: int = 1) -> Run:
    """One model of the paper: the base, or one that is to keep its words."""
    place = settings.attentions.index(attention) if attention in settings.attentions else 0
    deltas, etas = settings.delta or (DELTA,), settings.eta or (ETA,)
    options = {} if settings.papers_epochs else dict(TO_THE_END[settings.profile])
    options |= {"delta": (deltas * (place + 1))[place]} if name == "tying" else {}
    options |= {"eta": (etas * (place + 1))[place]} if name == "mlm" else {}
    if name in settings.frozen:
        options["embeddings"] = "frozen"
    made = settings.run("bilstm", attention, seed, variant=name, layers=layers, recipe="tutek2020")
    return replace(made, options=tuple(options.items()))


def variants(settings: Settings) -> list[Run]:
    """Table 1: every variant with every attention; `frozen`, not in the paper, shows what freezing alone does."""
    seeds = settings.seeds_or()
    parts = product(settings.attentions, REGULARIZED, seeds)
    return [variant(settings, name, attention, seed) for attention, name, seed in parts]


def learned(settings: Settings) -> list[Run]:
    """A control: those of LEARNED whose embeddings are fixed, with embeddings that learn."""
    seeds = settings.first_seeds()
    parts = product(settings.attentions, [name for name in LEARNED if name in settings.frozen], seeds)
    return [variant(replace(settings, frozen=()), name, attention, seed) for attention, name, seed in parts]


def shorter(settings: Settings) -> list[Run]:
    """A control of table 2: the models of SHORTENED, first attention and seed, from shorter vectors."""
    seed, scale = settings.seeds_or()[0], settings.vector_scale
    names = SHORTENED[settings.profile] if settings.shorter_vectors else ()
    runs = [variant(settings, name, settings.attentions[0], seed) for name in names]
    return [replace(run, options=(*run.options, ("vector_scale", scale))) for run in runs]


def tuned(settings: Settings, name: str, option: str, values: tuple[float, ...]) -> list[Run]:
    """A variant with every value of its weight, for each attention, one seed; where a value was chosen, with that."""
    seed, each = settings.seeds_or()[0], product(settings.attentions, values)
    if getattr(settings, option):
        return [variant(settings, name, attention, seed) for attention in settings.attentions]
    return [variant(replace(settings, **{option: (value,)}), name, attention, seed) for attention, value in each]


def delta_sweep(settings: Settings) -> list[Run]:
    """Tying with every delta."""
    return tuned(settings, "tying", "delta", DELTAS[settings.profile])


def eta_sweep(settings: Settings) -> list[Run]:
    """The masked language model with every eta."""
    return tuned(settings, "mlm", "eta", ETAS[settings.profile])


def layers(settings: Settings) -> list[Run]:
    """Table 6: more than one layer, with the first attention."""
    counts = (settings.layers or LAYERS[settings.profile]) if settings.deeper else ()
    parts = product(counts, LAYERED[settings.profile], settings.first_seeds())
    return [variant(settings, name, settings.attentions[0], seed, count) for count, name, seed in parts]


def adversaries(settings: Settings) -> list[Run]:
    """Figure 1: models that imitate those of FIGURE1 and attend elsewhere, for each lambda."""
    seeds = settings.first_seeds()
    parts = product(FIGURE1, seeds, settings.lambdas or LAMBDAS)
    return [
        imitation(variant(settings, name, settings.attentions[0], seed), strength, settings.imitation_epochs)
        for name, seed, strength in parts
    ]


def dot_initialisation(settings: Settings) -> list[Run]:
    """Appendix C: the base with dot attention, its query drawn from N(0, 1) or as torch initialises it."""
    seeds = settings.first_seeds()
    normal = [variant(settings, "base", "dot", seed) for seed in seeds]
    return normal + [replace(run, options=(*run.options, ("query_init", "default"))) for run in normal]


LEAST = {"delta": ("tying", 1.0), "eta": ("mlm", 0.1)}  # whose weight it is, and the paper's least


def below_the_papers(settings: RegularizationSettings) -> list[str]:
    """A sentence for each weight in use that is below all of the paper's."""
    seed, found = settings.seeds_or()[0], []
    for name, (of, least) in LEAST.items():
        used = {one: variant(settings, of, one, seed).option(name) for one in settings.attentions}
        found += [
            f"{name} {value:g} for {attention} attention is {least / value:,.0f} times below the paper's least: "
            f"sections 3 and 7 compare {of} with the base with fixed embeddings too."
            for attention, value in used.items()
            if value < least and of in settings.frozen
        ]
    return found


# What its findings read

LEARNED_TYING = "tying_with_learned_embeddings"
ALONE = declare("token_probability_mean", "fraction")
declare("rationale_average_precision_attention", "fraction")


def tables(
    measured: pd.DataFrame, deeper: pd.DataFrame, information: pd.DataFrame, frozen: Iterable[str] = ()
) -> dict[str, pd.DataFrame]:
    """What the findings read.

    Args:
        measured, deeper: every variant, with one layer and with more, measured with substituted attention and
            token_probability_mean, with the rationale's average precision where there is one.
        information: rows of lib.analysis.information. frozen: the variants whose embeddings do not learn.
    """
    both = add_entropies(pd.concat([measured, deeper]) if len(deeper) else measured, ["attention"])
    right = both[both["label"] == both["prediction"]]
    return {
        "measured": both,
        "answers": both,
        "right": right,
        "information": information.assign(fixed=information["variant"].isin(frozen)),
    }


def evenness(histories: Mapping[tuple[str, int], Sequence[Mapping]]) -> pd.DataFrame:
    """The attention's entropy on dev at the last epoch, a row for each start of the query and seed (appendix C)."""
    rows = [
        {"start": start, "seed": seed, "entropy": history[-1]["dev_attention_entropy"]}
        for (start, seed), history in histories.items()
    ]
    return pd.DataFrame(rows)


def information(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """T3: mutual information of words and states, of a variant less its control: the base with as fixed embeddings."""
    known, measured = tables["information"], tables["measured"]
    attention = measured["attention"].iloc[0]
    for variant, rows in known.groupby("variant", sort=False):
        control = "frozen" if rows["fixed"].all() and "frozen" in set(known["variant"]) else "base"
        if variant in ("base", "frozen"):
            continue
        effect = information_difference(known, NAME + SAMPLES[0], (variant, control))
        where = {"attention": attention, "layers": 1}
        groups = [rows_where(measured, where | {"variant": name}) for name in (variant, control)]
        yield {"model": f"{model_name([variant, attention])}, against {title_of(control)}"}, groups, effect


PAPER = Paper(
    "regularization",
    KEY,
    RegularizationSettings,
    (delta_sweep, eta_sweep, variants, learned, shorter, layers, adversaries, dot_initialisation),
    swept={"delta": delta_sweep, "eta": eta_sweep},
)
