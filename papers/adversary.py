"""Wiegreffe & Pinter (2019)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

import pandas as pd
from pydantic import NonNegativeFloat, PositiveInt
from pydantic.dataclasses import dataclass

from lib import analysis
from lib.analysis.adversaries import distance_beyond_seeds, select_runs
from lib.analysis.summaries import rows_where
from lib.models import ATTENTIONS
from lib.quantity import title_of
from lib.training import Run
from lib.training.runs import NEVER_ZERO
from papers.paper import Paper
from papers.settings import Distinct, Encoder, Settings, one_of, setting

BASE_SEEDS = {"quick": 3, "paper": 9}  # the base and others: eight, as in the paper
ADVERSARY_SEEDS = {"quick": 2, "paper": 5}
LAMBDAS = {"quick": (1e-3, 2e-3), "paper": (1e-4, 5.25e-4, 1e-3, 2e-3, 3e-3)}  # the paper's of SST is 5.25e-4
GUIDING = 1e-3  # lambda of the adversary that guides the MLP, in table 3


@dataclass(frozen=True)
class AdversarySettings(Settings):
    """Beside those of every notebook: the trained adversaries."""

    encoder: Encoder = setting("bilstm", "of the base and its adversaries")
    attention: one_of(ATTENTIONS) = setting("additive", "of the same")
    lambdas: Distinct[NonNegativeFloat] | None = setting(None, "weights of the distance, beside 0; None: the profile's")
    adversary_epochs: PositiveInt | None = setting(None, "most epochs of a trained adversary; None: the profile's")
    adversaries: bool = setting(True, "table 4, figure 5, two guides of table 3: trained adversaries; False: left out")


def bases(settings: Settings, others: int = 0) -> list[Run]:
    """The paper's main model under every seed, and under `others` seeds more."""
    chosen = settings.seeds_or(ADVERSARY_SEEDS[settings.profile])
    more = [seed for seed in range(len(chosen) + others) if seed not in chosen][:others]
    return [settings.run(settings.encoder, settings.attention, seed) for seed in chosen + more]


def base_seeds(settings: Settings) -> list[Run]:
    """The base, and the same model under other seeds: BASE_SEEDS of the profile, or more if more were chosen."""
    return bases(settings, others=max(0, BASE_SEEDS[settings.profile] - len(bases(settings))))


def uniform(settings: Settings) -> list[Run]:
    """The base's architecture with equal attention to all tokens (section 3.2)."""
    return [replace(base, variant="uniform") for base in bases(settings)]


def sweep(settings: Settings) -> list[Run]:
    """Trained adversaries (section 4): for each seed one of each lambda, against the base of that seed."""
    aim = () if settings.projection in NEVER_ZERO else (("divergence", "jsd"),)
    aim += (("epochs", settings.adversary_epochs),) if settings.adversary_epochs else ()
    lambdas = dict.fromkeys((0.0, *(settings.lambdas or LAMBDAS[settings.profile])))
    pairs = product(bases(settings) if settings.adversaries else (), [(("lambda", one), *aim) for one in lambdas])
    return [replace(base, variant="adversary", base=base, options=base.options + more) for base, more in pairs]


def guides(settings: Settings) -> list[Run]:
    """The guided MLP (section 3.4), which is Jain & Wallace's average encoder: without and with each guide."""
    mlps = [replace(base, encoder="average") for base in bases(settings)]
    runs = [*mlps, *(replace(mlp, variant="uniform") for mlp in mlps)]
    runs += [replace(mlp, variant="guide_base", base=replace(mlp, encoder=settings.encoder)) for mlp in mlps]
    strength = guiding(settings.lambdas or LAMBDAS[settings.profile])
    return runs + (imitation_guides(settings, strength) if strength else [])


def imitation_guides(settings: Settings, strength: float = 0.0) -> list[Run]:
    """The MLP guided by the adversaries of one lambda; those of 0 only imitate the base, trained anew."""
    adversaries = [run for run in sweep(settings) if run.option("lambda") == strength]
    return [replace(run.base, encoder="average", variant="guide_adversary", base=run) for run in adversaries]


def guiding(lambdas: Iterable[float]) -> float:
    """The lambda of the adversary that guides the MLP: that of table 3, or where there is none the largest."""
    return GUIDING if GUIDING in set(lambdas) else max(lambdas)


def table3(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores of the MLPs as the paper's table 3 names them: weights of their own are additive, all others imposed."""
    guided = scores[scores["variant"].astype(str).str.startswith("guide_")].assign(encoder="mlp")
    guided.loc[guided["variant"].ne("guide_learned"), ["attention", "projection"]] = "imposed", ""
    return guided


def table4(rows: pd.DataFrame) -> pd.DataFrame:
    """The adversaries that dev chose as the paper's table 4 has them: its TVD is half of the two-class TVD."""
    chosen = rows[rows["trains"].eq("chosen") & rows["value"].notna() & rows["quantity"].ne("tvd")]
    return chosen.replace({"quantity": {"tvd_half": "tvd"}})


def partners(rows: pd.DataFrame, of_models: pd.DataFrame) -> list[pd.DataFrame]:
    """Tables 3 and 4, of the paper's own attention."""
    return [table4(rows), table3(rows_where(of_models, {"attention": "additive", "projection": "softmax"}))]


def tables(of_models, of_seeds, guides, adversaries, dev, searches) -> dict[str, pd.DataFrame]:
    """What the findings read; of_seeds: `seed_distances` of the bases, dev: `adversaries_by_dev` of the sweep."""
    of_models, of_seeds = (analysis.add_entropies(rows, ["attention"]) for rows in (of_models, of_seeds))
    chosen = select_runs(adversaries, dev[dev["chosen"]])
    given = {"bases": of_seeds, "uniform": rows_where(of_models, {"variant": "uniform"}), "searches": searches}
    return given | {"chosen": chosen, "guides": guides, "measured": pd.concat([of_models, guides])}


def less_seeds(tables: Mapping[str, pd.DataFrame], attention: str) -> Iterator[tuple]:
    """W2, W2b, W4c: how much farther from the base's attention another is than other seeds' attention."""
    if len(rows := tables[attention]):
        yield {}, [tables["bases"]], distance_beyond_seeds(rows, tables["bases"])


def base_guide_less_adversary(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """W3c: F1 of the MLP by the base's attention, less that by the adversary's, where that is a guide."""
    rows, between = tables["guides"], ({"variant": "guide_base"}, {"variant": "guide_adversary"})
    if len(rows := rows[rows["seed"].isin(rows_where(rows, between[1])["seed"])]):
        effect = analysis.effects_between(rows, ["f1"], between)[0]
        yield {"model": f"MLP guided by {title_of(rows['guide'].iloc[0])}"}, [rows_where(rows, between[0])], effect


def f1_of_the_adversary(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """W4b: its F1 less that of the base of its seed."""
    if len(rows := tables["chosen"]):
        both, between = pd.concat([tables["bases"], rows]), ({"variant": "adversary"}, {"variant": "base"})
        yield {}, [tables["bases"]], analysis.effects_between(both, ["f1"], between)[0]


PARTS = (base_seeds, uniform, guides, imitation_guides, sweep)
PAPER = Paper("adversary", "wiegreffe2019", AdversarySettings, PARTS, partners=partners)
