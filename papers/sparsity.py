"""Meister et al. (2021)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Annotated

import pandas as pd
from pydantic import Field, NonNegativeFloat, PositiveInt
from pydantic.dataclasses import dataclass

from lib import importance
from lib.analysis import add_entropies, add_support, attention_weights, correlate, measure_all, summarise
from lib.analysis.adversaries import at_one_distance
from lib.analysis.summaries import mean_effect, per_group
from lib.datasets.pretrained import is_pretrained
from lib.projections import sparsegen_name, sparsegen_strength
from lib.quantity import declare, tau_name, title_of
from lib.training import Run, Trained
from papers.effects import model_name, split_models, uniform
from papers.paper import Paper
from papers.regularization import TO_THE_END, imitation
from papers.settings import Distinct, Encoders, Settings, one_of, setting

PROJECTIONS = ("softmax", "sparsemax")
# The paper's grid of lambda is not printed. Beyond it, softmax, and entmax with a fixed and a learned alpha.
STRENGTHS = {"quick": (-10.0, 0.0, 0.9), "paper": (-100.0, -10.0, -3.0, -1.0, 0.0, 0.25, 0.5, 0.75, 0.9)}
SPECTRUM = {"quick": ("softmax",), "paper": ("softmax", "entmax:1.5", "entmax:learned")}
# In profile paper the learning rates of table 4, which need many epochs; else Jain & Wallace's, which the recipe has.
SLOWLY = {"epochs": 300, "patience": 20}
RATES = {"bilstm": SLOWLY | {"learning_rate": 1e-4}, "transformer": SLOWLY | {"learning_rate": 1e-5}}
TRANSFORMERS = {"all": {"learning_rate": 1e-4}, "attention": {"learning_rate": 1e-2, "epochs": 2000}}  # adversaries
ADVERSARY_LAMBDAS = {"quick": (0.1,), "paper": (0.05, 0.2)}  # the paper's are not printed
FROZEN_LAMBDAS = {"quick": (1.0,), "paper": (1.0, 3.0, 10.0, 30.0)}
KL_LAMBDAS = {"quick": (0.1,), "paper": (0.03, 0.1, 0.3, 1.0)}  # footnote 5's divergence, of frozen adversaries too
OTHER_START = 100  # added to a model's seed: its frozen adversary's attention starts there, not where the model's did
LONGEST = 2000  # tokens of a text whose gradients are computed: a Transformer's need memory for all pairs of words
MEASURES = ("gradient_of_input", "gradient_of_hidden", "leave_one_out_of_input", "leave_one_out_of_hidden")
SHARES = {f"share_of_ceiling_{name}": tau_name(("attention", name)) for name in MEASURES[::2]}
# The kinds of adversaries by what is trained and the divergence, as in published.csv where they are its.
FROZEN, UNFROZEN = "adversary_frozen", "adversary_unfrozen"
KINDS = {("attention", "jsd"): FROZEN, ("attention", "kl"): "frozen_by_kl", ("all", "jsd"): UNFROZEN}
KINDS |= {("attention from the base", "jsd"): "frozen_from_base", ("each text", "jsd"): "searched_for_each_text"}


@dataclass(frozen=True)
class SparsitySettings(Settings):
    """Beside those of every notebook: the encoders, sparsegen's lambdas, and the trained adversaries."""

    projection: one_of(("softmax",)) = setting("softmax", "of attention: all are trained here, so it stays softmax")
    encoders: Encoders = setting(("bilstm", "transformer"), "with additive and with dot attention")
    strengths: Distinct[Annotated[float, Field(lt=1)]] | None = setting(
        None, "sparsegen's lambdas, below 1, as [-3, 0, 0.5]; None: the profile's, in paper entmax too"
    )
    lambdas: Distinct[NonNegativeFloat] | None = setting(None, "weights of adversaries' distance; None: the profile's")
    frozen_lambdas: Distinct[NonNegativeFloat] | None = setting(None, "of frozen ones; None: the profile's, some by KL")
    adversary_epochs: PositiveInt | None = setting(None, "most epochs of an adversary; None: by its kind")
    sweep: bool = setting(True, "other projections, and sparsegen's lambdas; False: softmax and sparsemax alone")
    adversaries: bool = setting(True, "table 5: trained adversaries; False: they are left out")


def model(settings: Settings, encoder: str, projection: str, seed: int) -> Run:
    """An encoder with the paper's attention for it, by the paper's recipe, in profile paper until dev is no better."""
    how = RATES[encoder] if settings.profile == "paper" and encoder in RATES else TO_THE_END[settings.profile]
    how = {} if is_pretrained(encoder) else how
    attention, start = ("dot", {"query_init": "normal"}) if encoder == "transformer" else ("additive", {})
    options = tuple((how | start).items())
    return settings.run(encoder, attention, seed, recipe="meister2021", projection=projection, options=options)


def models(settings: Settings) -> list[Run]:
    """Tables 1, 3 and 6: every encoder under softmax and sparsemax, all seeds."""
    return [model(settings, *part) for part in product(settings.encoders, PROJECTIONS, settings.seeds_or())]


def spectrum(settings: Settings) -> list[Run]:
    """Figures 2 and 3, table 2: softmax, other projections, and sparsegen along its lambda; at 0 it is sparsemax."""
    if not settings.sweep:
        return of_each(settings, PROJECTIONS)
    others = PROJECTIONS[:1] if settings.strengths else SPECTRUM[settings.profile]
    strengths = sorted(settings.strengths or STRENGTHS[settings.profile])
    return of_each(settings, [*others, *map(sparsegen_name, strengths)])


def of_each(settings: Settings, projections: Iterable[str]) -> list[Run]:
    """Every encoder under each projection; in profile quick the first encoder and seed alone."""
    encoders = settings.encoders[: 1 if settings.profile == "quick" else None]
    return [model(settings, *part) for part in product(encoders, projections, settings.first_seeds())]


def without_context(settings: Settings) -> list[Run]:
    """A control: an encoder whose hidden states depend on their own word alone, under softmax and sparsemax."""
    return [model(settings, *part) for part in product(["average"], PROJECTIONS, settings.seeds_or())]


def imitations(settings: Settings, strengths: Iterable[float], **options) -> list[Run]:
    """The adversaries of each model under softmax, with each lambda; at 1e-3 a Transformer's would not converge."""
    bases = of_each(settings, PROJECTIONS[:1]) if settings.adversaries else []
    how, pairs = {"transformer": TRANSFORMERS[options.get("trains", "all")]}, product(bases, dict.fromkeys(strengths))
    return [imitation(*pair, settings.adversary_epochs, **options | how.get(pair[0].encoder, {})) for pair in pairs]


def adversaries(settings: Settings) -> list[Run]:
    """Table 5, unfrozen: trained anew; that of lambda 0 only imitates: what others lose beyond is attention's price."""
    return imitations(settings, (0.0, *(settings.lambdas or ADVERSARY_LAMBDAS[settings.profile])))


def frozen_adversaries(settings: Settings) -> list[Run]:
    """Table 5, frozen: the attention alone learns, from its base's weights, or from others so as not to be there."""
    strengths = (0.0, *(settings.frozen_lambdas or FROZEN_LAMBDAS[settings.profile]))
    frozen = imitations(settings, strengths, trains="attention")
    if not settings.frozen_lambdas:
        frozen += imitations(settings, KL_LAMBDAS[settings.profile], trains="attention", divergence="kl")
    elsewhere = [replace(run, seed=run.seed + OTHER_START) for run in frozen]
    return elsewhere + imitations(settings, strengths, trains="attention", starts="base")


def measure(trained: Sequence[Trained]) -> pd.DataFrame:
    """A row for each model and text: four measures of importance, their taus with attention, and their entropies."""
    quantities = [attention_weights]
    for of in ("input", "hidden"):
        quantities.append(importance.quantity(f"gradient_of_{of}", importance.gradient, LONGEST, of=of))
        quantities.append(importance.quantity(f"leave_one_out_of_{of}", importance.leave_one_out, of=of))
    correlated = correlate(measure_all(trained, quantities), [("attention", name) for name in MEASURES])
    return add_support(add_entropies(correlated, ["attention", *MEASURES]))


def along_lambda(measured: pd.DataFrame) -> pd.DataFrame:
    """Sparsegen's rows, if of several lambdas, and the taus with the inputs as shares of what ties allow."""
    at = measured["projection"].map(sparsegen_strength)
    for share, tau in SHARES.items():
        declare(share, "fraction", f"{title_of(tau)}, share of what ties allow", (-1, 1))
        measured = measured.assign(**{share: measured[tau] / measured["tau_ceiling"]})
    return measured.assign(**{"lambda": at, "projection": "sparsegen"})[at.notna() & (at.nunique() > 1)]


def table2(trends: pd.DataFrame) -> pd.DataFrame:
    """The trends along lambda (`lib.analysis.trends`) that the paper prints, under its names."""
    own = trends[trends["quantity"].eq("entropy_of_gradient_of_input")]
    own = own.assign(quantity="kendall_tau_lambda_vs_entropy_of_input_importance", unit="tau-b")
    return own.assign(value=own["tau"], low=own["tau_low"], high=own["tau_high"])


def table5(adversaries: pd.DataFrame) -> pd.DataFrame:
    """Frozen and unfrozen adversaries at the JSD that both reach, of `with_kinds`' rows; theirs has no projection."""
    both = per_group(adversaries, ["encoder"], partial(at_one_distance, kinds=[FROZEN, UNFROZEN]))
    return summarise(both.assign(variant=both["kind"]), ["jsd", "accuracy"]).assign(projection="", series="at one JSD")


def partners(rows: pd.DataFrame, of_models: pd.DataFrame) -> list[pd.DataFrame]:
    """Tables 2 and 5 of kept rows."""
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, "tau", "tau_low", "tau_high"])))
    return [table2(rows[rows["tau"].notna()]), rows[rows["series"].eq("at one JSD")]]


def tables(measured: pd.DataFrame, sweep: pd.DataFrame, adversaries: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What the findings read: softmax and sparsemax, `along_lambda` but where attention is uniform, adversaries."""
    gaps = {}
    for name in ("gradient", "leave_one_out"):
        of_states, of_inputs = (measured[tau_name(("attention", f"{name}_of_{of}"))] for of in ("hidden", "input"))
        gaps[declare(f"gap_{name}", "tau-b", None, (-2, 2))] = of_states - of_inputs
    return {"measured": measured.assign(**gaps), "sweep": uneven(sweep), "adversaries": adversaries}


def uneven(sweep: pd.DataFrame) -> pd.DataFrame:
    """The rows of `along_lambda` without those lambdas under which attention is uniform, if it is not under all."""
    kept = sweep.groupby(["encoder", "lambda"]).filter(lambda rows: not uniform(rows.drop(columns="lambda")))
    return pd.concat([kept, sweep[~sweep["encoder"].isin(kept["encoder"])]])


def lost(tables: Mapping[str, pd.DataFrame], kinds: Sequence[str], other: str) -> Iterator[tuple]:
    """M5 and M5b: accuracy of what only imitates less that of adversaries, at the JSD that these and others reach."""
    for (key, rows), own in product(split_models(tables["adversaries"], ["encoder", "projection"]), kinds):
        both = at_one_distance(rows, [own, other])
        about = {"model": f"{model_name(key.values())}, {title_of(own)}", "variant": own}
        if len(both):
            yield about, [rows[rows["variant"].eq("base")]], mean_effect(both[both["kind"].eq(own)], "accuracy_lost")


PARTS = (models, spectrum, without_context, adversaries, frozen_adversaries)
PAPER = Paper("sparsity", "meister2021", SparsitySettings, PARTS, partners=partners)
