"""Wiegreffe & Pinter (2019)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import NonNegativeFloat, PositiveInt
from pydantic.dataclasses import dataclass

from lib.analysis import add_entropies, effects_between, mean_effect, select_runs
from lib.analysis.summaries import rows_where
from lib.models import ATTENTIONS
from lib.quantity import JSD_BOUNDS, declare
from lib.training import Run
from lib.training.losses import DIVERGENCES, ENDS, REDUCTIONS, TVDS
from lib.training.runs import JAIN, OF_VARIANTS
from papers.paper import Paper
from papers.settings import Distinct, Settings, one_of, setting

KEY = "wiegreffe2019"


# Runs

BASE_SEEDS = {"quick": 3, "paper": 9}  # the base and others: eight, as Wiegreffe & Pinter have it
ADVERSARY_SEEDS = {"quick": 2, "paper": 5}
# Wiegreffe & Pinter's of SST is 5.25e-4, that of their table 3 is 1e-3.
# 0 only imitates: what that gives without any wish for distance is the control of all others.
LAMBDAS = {"quick": (0.0, 1e-3, 2e-3), "paper": (0.0, 1e-4, 5.25e-4, 1e-3, 2e-3, 3e-3)}
# With a frozen encoder attention hardly moves at those; far above, the unbounded divergence grows without end.
FROZEN_LAMBDAS = {"quick": (0.0, 5e-3, 2e-2), "paper": (0.0, 5.25e-4, 1e-3, 5e-3)}
# What of an adversary's training may be otherwise than ours: see AdversarySettings.
USUAL = OF_VARIANTS["adversary"] | {"reduction": JAIN["reduction"]}


@dataclass(frozen=True)
class AdversarySettings(Settings):
    """Beside those of every notebook: the trained adversaries, and how a text's distances become one number."""

    altering: ClassVar[tuple[str, ...]] = ("projection", "divergence", "tvd", "reduction", "ends", "over_seeds")

    attention: one_of(ATTENTIONS) = setting("additive", "of the base and its adversaries")
    lambdas: Distinct[NonNegativeFloat] | None = setting(
        None, "weights of distance in the adversary's loss, with 0, the control; None: the profile's"
    )
    frozen_lambdas: Distinct[NonNegativeFloat] | None = setting(
        None, "the same with a frozen encoder, with 0; None: the profile's"
    )
    adversary_epochs: PositiveInt | None = setting(None, "most epochs of a trained adversary; None: the profile's")
    divergence: one_of(DIVERGENCES) = setting(USUAL["divergence"], "in the adversary's loss: kl or jsd")
    tvd: one_of(TVDS) = setting(USUAL["tvd"], "in the adversary's loss: half, as in the paper's code, or full")
    reduction: one_of(REDUCTIONS) = setting(
        USUAL["reduction"], "of the adversary's loss over a batch: sum, or twice, as in the paper's code"
    )
    ends: one_of(ENDS) = setting(
        USUAL["ends"], "when its training does: converged, the last epoch kept, or lowest, as in the paper's code"
    )
    over_seeds: one_of(("median", "max")) = setting("median", "median, or max as the caption of figure 3 reads")


def bases(settings: Settings, others: int = 0) -> list[Run]:
    """The paper's main model under every seed, and under `others` seeds more."""
    chosen = settings.seeds_or(ADVERSARY_SEEDS[settings.profile])
    more = [seed for seed in range(len(chosen) + others) if seed not in chosen][:others]
    return [settings.run("bilstm", settings.attention, seed) for seed in chosen + more]


def base_seeds(settings: Settings) -> list[Run]:
    """The base, and the same model under other seeds: BASE_SEEDS of the profile, or as many as were chosen."""
    return bases(settings, others=max(0, BASE_SEEDS[settings.profile] - len(bases(settings))))


def uniform(settings: Settings) -> list[Run]:
    """The base's architecture with equal attention to all tokens (section 3.2)."""
    return [replace(base, variant="uniform") for base in bases(settings)]


def sweep(settings: Settings, trains: str = "all") -> list[Run]:
    """Trained adversaries (section 4): for each seed one of each lambda, against the base of that seed."""
    aim = {name: getattr(settings, name) for name in ("divergence", "tvd", "reduction", "ends")} | {"trains": trains}
    aim = tuple((name, value) for name, value in aim.items() if value != USUAL[name])
    if settings.adversary_epochs and trains == "all":
        aim += (("epochs", settings.adversary_epochs),)
    return [
        replace(base, variant="adversary", base=base, options=(("lambda", strength), *aim))
        for base in bases(settings)
        for strength in settings.lambdas or LAMBDAS[settings.profile]
    ]


def frozen_sweep(settings: Settings) -> list[Run]:
    """The same with the base's encoder and decoder, fixed: only the attention learns."""
    lambdas = settings.frozen_lambdas or FROZEN_LAMBDAS[settings.profile]
    return sweep(replace(settings, lambdas=lambdas), trains="attention")


def guides(settings: Settings) -> list[Run]:
    """The guided MLP (section 3.4), which is Jain & Wallace's average encoder: without and with each guide.

    With lambda 0 alone no adversary guides, but `imitation_guides`.
    """
    strength = guiding(settings.lambdas or LAMBDAS[settings.profile])
    found = []
    for adversary in sweep(replace(settings, lambdas=[strength])):
        learned = replace(adversary.base, encoder="average")
        guided = [("base", adversary.base), ("instance_adversary", adversary.base)]
        guided += [("adversary", adversary)] if strength else []
        found += [replace(learned, variant="uniform"), learned]
        found += [replace(learned, variant=f"guide_{kind}", base=base) for kind, base in guided]
    return found


def imitation_guides(settings: Settings) -> list[Run]:
    """The MLP guided by what only imitates the base: is it the adversary that misguides, or training anew?"""
    imitations = [run for run in sweep(settings) if run.option("lambda") == 0]
    return [replace(one.base, encoder="average", variant="guide_adversary", base=one) for one in imitations]


def partners(rows: pd.DataFrame, of_models: pd.DataFrame) -> list[pd.DataFrame]:
    """Tables 3 and 4: guides, and the adversaries that each seed chose on dev.

    Their TVD is half of the two-class TVD, as in their code.
    """
    adversaries = rows[rows["trains"].eq("chosen") & rows["value"].notna() & rows["quantity"].ne("tvd")]
    softmax = of_models["attention"].eq("additive") & of_models["projection"].eq("softmax")
    guided = of_models[softmax & of_models["variant"].astype(str).str.startswith("guide_")].assign(encoder="mlp")
    imposed = guided["variant"].ne("guide_learned")
    attention, projection = guided["attention"].mask(imposed, "imposed"), guided["projection"].mask(imposed, "")
    guided = guided.assign(attention=attention, projection=projection)
    return [adversaries.replace({"quantity": {"tvd_half": "tvd"}}), guided]


# What its findings read

GUIDING = 1e-3  # lambda of the adversary that guides the MLP, in table 3


def tables(
    of_models: pd.DataFrame, of_seeds: pd.DataFrame, guides: pd.DataFrame, adversaries: pd.DataFrame,
    dev: pd.DataFrame, searches: pd.DataFrame,
) -> dict[str, pd.DataFrame]:  # fmt: skip
    """What the findings read.

    Args:
        of_models: `measure_versus_base` of base and uniform models. of_seeds: `seed_distances` of the bases.
        guides: the MLPs; `imitation_guides` have the variant guide_imitation.
        adversaries: `measure_versus_base` of both sweeps. dev: `adversaries_by_dev` of them.
        searches: the search per instance: seed, instance, jsd.
    """
    of_models, of_seeds = (add_entropies(rows, ["attention"]) for rows in (of_models, of_seeds))
    both = {"measured": pd.concat([of_models, guides]), "bases": of_seeds, "guides": guides, "searches": searches}
    return both | {"adversaries": adversaries[adversaries["trains"] == "all"], "dev": dev[dev["trains"] == "all"]}


def search_less_seeds(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """W2: how much farther from the base's attention the search for each text goes than other seeds do."""
    yield from less_seeds(tables, tables["searches"])


def equal_weights_less_seeds(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """W2b: how much farther equal weights are."""
    rows = tables["measured"]
    yield from less_seeds(tables, rows_where(rows, {"variant": "uniform", "encoder": "bilstm"}))


def less_seeds(tables: Mapping[str, pd.DataFrame], other: pd.DataFrame) -> Iterator[tuple]:
    """JSD of other attention from the base's, less that of the same model under other seeds."""
    keys, bases = ["seed", "instance"], tables["bases"]
    both = other[[*keys, "jsd"]].merge(bases.drop(columns="jsd", errors="ignore"), on=keys)
    both = both.dropna(subset=["jsd", "jsd_of_seeds"])
    gap = declare("jsd_gap", "nats", bounds=(-JSD_BOUNDS[1], JSD_BOUNDS[1]))
    effect = mean_effect(both.assign(**{gap: both["jsd"] - both["jsd_of_seeds"]}), gap)
    se = with_pairs(effect.se, both.groupby("seed")["jsd_of_seeds"].mean())
    yield {"model": "BiLSTM"}, [bases], replace(effect, se=se)


def with_pairs(se: float, of_seeds: pd.Series) -> float:
    """The standard error over texts, with what the spread over seeds lacks where each value is of pairs of seeds.

    Each pair is in the values of both of its seeds, so that the variance of their mean is four times that of
    independent ones (the jackknife of a mean over pairs); the spread of the values accounts for one of the four.
    """
    return float(np.sqrt(se**2 + 3 * of_seeds.var() / len(of_seeds))) if len(of_seeds) > 1 else se


def base_guide_less_adversary(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """W3c: F1 of the MLP by the base's attention, less that by the adversary's, of adversaries that moved."""
    dev, guides = tables["dev"], tables["guides"]
    moved = dev[dev["lambda"].eq(guiding(dev["lambda"])) & (dev["lambda"] > 0) & dev["why"].eq("") & dev["moved"]]
    rows = guides[guides["seed"].isin(moved["seed"])]
    if len(rows):
        between = {"variant": "guide_base"}, {"variant": "guide_adversary"}
        groups = [rows_where(rows, side) for side in between]
        yield {"model": "MLP"}, groups[:1], effects_between(rows, ["f1"], between)[0]


def chosen(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The rows of the adversaries that each seed chose on dev."""
    return select_runs(tables["adversaries"], tables["dev"][tables["dev"]["chosen"]])


def distance_of_the_adversary(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """W4: how far the attention of the adversary that dev chose is from the base's."""
    if len(rows := chosen(tables)):
        yield {"model": "BiLSTM"}, [tables["bases"]], mean_effect(rows, "jsd")


def f1_of_the_adversary(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """W4b: its F1 less that of the base of its seed."""
    if len(rows := chosen(tables)):
        base = rows_where(tables["measured"], {"variant": "base", "encoder": "bilstm"})
        both = pd.concat([base[base["seed"].isin(rows["seed"])], rows])
        between = {"variant": "adversary"}, {"variant": "base"}
        yield {"model": "BiLSTM"}, [base], effects_between(both, ["f1"], between)[0]


def guiding(lambdas: Iterable[float]) -> float:
    """The lambda of the adversary that guides the MLP: that of table 3, or where there is none the largest."""
    return GUIDING if GUIDING in set(lambdas) else max(lambdas)


PAPER = Paper(
    "adversary",
    KEY,
    AdversarySettings,
    (base_seeds, uniform, guides, imitation_guides, sweep, frozen_sweep),
    partners=partners,
)
