"""Tutek & Snajder (2020)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import pandas as pd
from pydantic import NonNegativeFloat, PositiveInt
from pydantic.dataclasses import dataclass

from lib.analysis import add_entropies
from lib.analysis.adversaries import measure_versus_base
from lib.analysis.summaries import add_sureness, beside_base, rows_where
from lib.analysis.word_states import NAME, SAMPLES, information_difference
from lib.datasets.pretrained import is_pretrained
from lib.quantity import title_of
from lib.training import Run, Trained
from lib.training.runs import REGULARIZED, default_of
from papers.effects import model_name
from papers.paper import Paper
from papers.settings import Attentions, Distinct, Encoder, Settings, Several, setting

DELTAS = {"quick": (1.0, 10.0), "paper": (1.0, 10.0, 20.0, 30.0)}  # the paper's: section 3.1, table 4
ETAS = {"quick": (0.1, 1.0), "paper": (0.1, 0.3, 1.0, 3.0, 5.0)}
ATTENTIONS = {"quick": ("additive",), "paper": ("additive", "dot")}
WORDS = {"quick": 100, "paper": 1000}  # whose states are clustered, and into as many clusters
LAYERS = {"quick": (2,), "paper": (2, 3)}
LAYERED = {"quick": ("base", "frozen", "tying"), "paper": ("base", "frozen", "concat", "tying", "mlm")}
FROZEN = ("residual", "tying", "mlm")  # whose embeddings do not learn
CLUSTERED = ("base", "frozen", "residual", "tying", "mlm")  # table 2; not concat, whose states are of another size
LEARNED_TYING = "tying_with_learned_embeddings"
# Differs from the paper: training ends when dev AUC has not risen for so many epochs, not after 8 (appendix A).
TO_THE_END = {"quick": {}, "paper": {"epochs": 100, "patience": 10}}
AIM = {"divergence": "jsd", "tvd": "full"}  # of an adversary, Eq. 6 to 8
OF_THE_BASE = ("delta", "eta", "epochs", "patience", "learning_rate")  # options that no adversary shares


@dataclass(frozen=True)
class RegularizationSettings(Settings):
    """Beside those of every notebook: encoder, attentions, the weights of the losses, and the parts beside table 1."""

    encoder: Encoder = setting("bilstm", "of all models")
    attentions: Attentions | None = setting(None, "None: both in profile paper, additive in quick")
    delta: Several[NonNegativeFloat] | None = setting(None, "weight of tying, for each attention; None: chosen on dev")
    eta: Several[NonNegativeFloat] | None = setting(None, "the same of the masked language model")
    lambdas: Distinct[NonNegativeFloat] = setting((0.0, 0.05, 0.2), "weights of distance in the adversary's loss")
    epochs: PositiveInt | None = setting(None, "most epochs of a model; None: in paper until dev is no better")
    imitation_epochs: PositiveInt | None = setting(None, "most epochs of an adversary; None: the profile's")
    deeper: bool = setting(True, "table 6: models of more layers; False: it is left out")
    adversaries: bool = setting(True, "figure 1: trained adversaries; False: they are left out")

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "attentions", self.attentions or ATTENTIONS[self.profile])


# --- runs


def variant(settings: Settings, name: str, attention: str, seed: int, layers: int = 1, **options) -> Run:
    """One model of the paper: the base, or one that is to keep its words; delta and eta are those of its attention."""
    options = ({"query_init": "normal"} if is_pretrained(settings.encoder) else TO_THE_END[settings.profile]) | options
    options |= {"epochs": settings.epochs} if settings.epochs else {}
    weight = {"tying": "delta", "mlm": "eta"}.get(name)
    if weight and (values := getattr(settings, weight)):
        place = settings.attentions.index(attention) if attention in settings.attentions else 0
        options = {weight: (values * (place + 1))[place]} | options
    options = {"embeddings": "frozen"} | options if name in FROZEN else options
    how = {"variant": name, "layers": layers, "recipe": "tutek2020", "options": tuple(options.items())}
    return settings.run(settings.encoder, attention, seed, **how)


def imitation(base: Run, strength: float, most_epochs: int | None = None, **others) -> Run:
    """The adversary of a model: built as it is, trained by Eq. 6 with lambda `strength`, and ended by its own rule."""
    options = {name: value for name, value in base.options if name not in OF_THE_BASE}
    options |= AIM | {"lambda": strength} | others | ({"epochs": most_epochs} if most_epochs else {})
    return replace(base, variant="adversary", base=base, options=tuple(options.items()))


def tuned(settings: Settings, name: str, option: str, values: Mapping[str, Sequence[float]]) -> list[Run]:
    """The base, and a variant with every value of its weight or with the one given: for each attention, one seed."""
    choices = [{}] if getattr(settings, option) else [{option: value} for value in values[settings.profile]]
    parts = product(settings.attentions, settings.seeds_or()[:1], [("base", {}), *((name, one) for one in choices)])
    return [variant(settings, which, attention, seed, **choice) for attention, seed, (which, choice) in parts]


def delta_sweep(settings: Settings) -> list[Run]:
    """Tying with every delta."""
    return tuned(settings, "tying", "delta", DELTAS)


def eta_sweep(settings: Settings) -> list[Run]:
    """The masked language model with every eta."""
    return tuned(settings, "mlm", "eta", ETAS)


def variants(settings: Settings) -> list[Run]:
    """Table 1: every variant with every attention; `frozen`, not in the paper, shows what freezing alone does."""
    parts = product(settings.attentions, REGULARIZED, settings.seeds_or())
    return [variant(settings, name, attention, seed) for attention, name, seed in parts]


def learned(settings: Settings) -> list[Run]:
    """A control: tying with embeddings that learn, where those of table 1 are fixed."""
    tied = [variant(settings, "tying", *part) for part in product(settings.attentions, settings.first_seeds())]
    return [replace(run, options=tuple(pair for pair in run.options if pair[0] != "embeddings")) for run in tied]


def layers(settings: Settings) -> list[Run]:
    """Table 6: more than one layer, with the first attention; of an encoder that has layers."""
    counts = LAYERS[settings.profile] if settings.deeper and default_of(settings.encoder, "layers") else ()
    parts = product(counts, LAYERED[settings.profile], settings.first_seeds())
    return [variant(settings, name, settings.attentions[0], seed, count) for count, name, seed in parts]


def adversaries(settings: Settings) -> list[Run]:
    """Figure 1: models that imitate the base or MLM and attend elsewhere, for each lambda."""
    parts = product(("base", "mlm"), settings.first_seeds(), settings.lambdas if settings.adversaries else ())
    pairs = [(variant(settings, name, settings.attentions[0], seed), strength) for name, seed, strength in parts]
    return [imitation(*pair, settings.imitation_epochs) for pair in pairs]


def dot_initialisation(settings: Settings) -> list[Run]:
    """Appendix C: the base with dot attention, its query drawn from N(0, 1) or as torch initialises it."""
    parts = product(({}, {"query_init": "default"}), settings.first_seeds())
    return [variant(settings, "base", "dot", seed, **start) for start, seed in parts]


def measure_imitations(imitations: Sequence[Trained]) -> pd.DataFrame:
    """Figure 1: how far each adversary is from the model that it imitates; the rows have that model's variant."""
    rows = [measure_versus_base([one], [one.base]).assign(variant=one.base.run.variant) for one in imitations]
    return pd.concat([pd.DataFrame(columns=["variant"]), *rows], ignore_index=True)


# --- what its findings read


def tables(measured: pd.DataFrame, information: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What the findings read, of the models of table 1 and of lib.analysis.information.

    They have lib.interventions.substituted, token_probability_mean, attention, and where known average precision.
    """
    both = add_entropies(measured, ["attention"])
    right = add_sureness(both[both["label"] == both["prediction"]])
    leaks = beside_base(right, ["sure", "token_probability_mean"])
    leaks = leaks.assign(leakage=leaks["base_token_probability_mean"] - leaks["token_probability_mean"])
    return {"measured": both, "answers": both, "right": right, "leaks": leaks, "information": information}


def information(tables: Mapping[str, pd.DataFrame], pairs: Sequence[tuple[str, str]] = ()) -> Iterator[tuple]:
    """T3, T6: mutual information of words and states, of a variant less its control, the base or *frozen*."""
    names = [name for name in tables["information"]["variant"].unique() if name not in ("base", "frozen")]
    pairs = pairs or [(name, "frozen" if name in FROZEN else "base") for name in names]
    known, measured = tables["information"], tables["measured"]
    where = {"attention": measured["attention"].iloc[0], "layers": 1}
    for pair in pairs:
        effect = information_difference(known, NAME + SAMPLES[0], pair)
        groups = [rows_where(measured, where | {"variant": name}) for name in pair]
        yield {"model": f"{model_name([pair[0], where['attention']])}, against {title_of(pair[1])}"}, groups, effect


PARTS = (delta_sweep, eta_sweep, variants, learned, layers, adversaries, dot_initialisation)
SWEPT = {"delta": delta_sweep, "eta": eta_sweep}
PAPER = Paper("regularization", "tutek2020", RegularizationSettings, PARTS, swept=SWEPT)
