"""Meister et al. (2021)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated

import pandas as pd
from pydantic import Field, NonNegativeFloat, PositiveInt
from pydantic.dataclasses import dataclass

from lib.analysis import effects_between
from lib.analysis.measuring import measure_all
from lib.analysis.summaries import rows_where
from lib.models.attention import QUERY_INITS
from lib.projections import sparsegen_name
from lib.quantity import Quantity, declare, tau_name
from lib.training import Run, Trained
from lib.training.trained import build
from papers.effects import model_name, split_models, uniform
from papers.paper import Paper
from papers.regularization import TO_THE_END, imitation
from papers.settings import Distinct, Encoders, Projection, Settings, one_of, setting

KEY = "meister2021"
CONTROL = "average"  # an encoder without context
PROJECTIONS = ("softmax", "sparsemax")


# Runs

ATTENTION = {"bilstm": "additive", "transformer": "dot"}  # of each encoder, in the paper
# The paper's grid is not printed. Beyond it, softmax, and entmax with a fixed and a learned alpha.
STRENGTHS = {"quick": (-10.0, 0.0, 0.9), "paper": (-100.0, -10.0, -3.0, -1.0, 0.0, 0.25, 0.5, 0.75, 0.9)}
SPECTRUM = {"quick": ("softmax",), "paper": ("softmax", "entmax:1.5", "entmax:learned")}
# Learning rates: Jain & Wallace's, which the recipe has, or those of table 4, which need many epochs.
RATES = {"fast": {}, "published": {"bilstm": {"learning_rate": 1e-4}, "transformer": {"learning_rate": 1e-5}}}
USUAL_RATES = {"quick": "fast", "paper": "published"}
# At those, until dev AUC has not risen for that many epochs.
SLOWLY = {"quick": {"epochs": 40, "patience": 5}, "paper": {"epochs": 300, "patience": 20}}  # or settings.patience
# The paper does not print its lambdas. The divergence is the bounded one.
# Beside them 0, with which an adversary only imitates. Nor does it say which projection their models have: softmax.
ADVERSARY_LAMBDAS = {"quick": (0.1,), "paper": (0.05, 0.2)}
FROZEN_LAMBDAS = {"quick": (1.0,), "paper": (0.2, 1.0)}
OTHER_START = 100  # added to a model's seed: its frozen adversary's attention starts there, not where the model's did
LONGEST = 2000  # tokens of a text whose gradients are computed: a Transformer's need memory for all pairs of words


@dataclass(frozen=True)
class SparsitySettings(Settings):
    """Beside those of every notebook: rates and ends of training, the projections, and the trained adversaries."""

    encoders: Encoders = setting(("bilstm", "transformer"), "with additive and with dot attention")
    rates: one_of(RATES) | None = setting(
        None, "of tables 1, 3, 6: fast, .001; published, .0001 and .00001; None: fast in quick, else published"
    )
    papers_epochs: bool = setting(False, "8 epochs in profile paper; no: until dev is no better")
    patience: PositiveInt | None = setting(
        None, "epochs without a better dev AUC that end training at published rates; None: the profile's"
    )
    projections: Distinct[Projection] | None = setting(
        None, "beside sparsegen, such as softmax or entmax:1.5; None: the profile's"
    )
    query_init: one_of(QUERY_INITS) = setting(
        "normal", "start of the query of dot attention: normal, N(0, 1); default: as torch initialises it"
    )
    strengths: Distinct[Annotated[float, Field(lt=1)]] | None = setting(
        None, "sparsegen's lambdas, below 1, such as [-3, 0, 0.5]; None: the profile's"
    )
    lambdas: Distinct[NonNegativeFloat] | None = setting(
        None, "weights of distance in the adversary's loss, and 0; None: the profile's"
    )
    frozen_lambdas: Distinct[NonNegativeFloat] | None = setting(
        None, "the same where the attention alone learns; None: the profile's"
    )
    adversary_epochs: PositiveInt | None = setting(
        None, "most epochs of an adversary; None: 300 in profile paper, 5 in quick"
    )

    @property
    def usual_rates(self) -> str:
        """The rates, by the profile where none were chosen."""
        return self.rates or USUAL_RATES[self.profile]


def model(settings: Settings, encoder: str, projection: str, seed: int) -> Run:
    """An encoder with the paper's attention for it, trained by the paper's recipe at the chosen rate."""
    rates = settings.usual_rates
    rate, ending = RATES[rates].get(encoder, {}), (TO_THE_END if rates == "fast" else SLOWLY)[settings.profile]
    if settings.patience and rates == "published":
        ending = ending | {"patience": settings.patience}
    options = rate | ({} if settings.papers_epochs else ending)
    run = settings.run(encoder, ATTENTION.get(encoder, "additive"), seed, recipe="meister2021")
    options |= {"query_init": settings.query_init} if run.attention == "dot" else {}
    return replace(run, projection=projection, options=tuple(options.items()))


def models(settings: Settings) -> list[Run]:
    """Tables 1, 3 and 6: every encoder under softmax and sparsemax, all seeds."""
    parts = product(settings.encoders, PROJECTIONS, settings.seeds_or())
    return [model(settings, *part) for part in parts]


def sweep(settings: Settings) -> list[Run]:
    """Table 2 and figure 3: sparsegen along its lambda; at 0 it is sparsemax, and the same run."""
    strengths = settings.strengths or STRENGTHS[settings.profile]
    return of_each(settings, [sparsegen_name(strength) for strength in strengths])


def spectrum(settings: Settings) -> list[Run]:
    """Figure 2: projections beside sparsegen; softmax always, which adversaries imitate."""
    chosen = settings.projections or SPECTRUM[settings.profile]
    return of_each(settings, list(dict.fromkeys((*PROJECTIONS[:1], *chosen))))


def of_each(settings: Settings, projections: list[str] | tuple[str, ...]) -> list[Run]:
    """Every encoder under each projection, at the fast rate; in profile quick the first encoder and seed alone."""
    encoders = settings.encoders[: 1 if settings.profile == "quick" else None]
    parts = product(encoders, projections, settings.first_seeds())
    return [model(replace(settings, rates="fast"), *part) for part in parts]


def without_context(settings: Settings) -> list[Run]:
    """A control: an encoder whose hidden states depend on their own word alone, under softmax and sparsemax."""
    return models(replace(settings, encoders=(CONTROL,), rates="fast"))


def starts(settings: Settings) -> list[Run]:
    """The softmax models with dot attention whose query starts in the other way."""
    other = next(start for start in QUERY_INITS if start != settings.query_init)
    alone = [replace(settings, query_init=other, encoders=(encoder,)) for encoder in settings.encoders]
    made = [run for one in alone for run in of_each(one, PROJECTIONS[:1])]
    return [run for run in made if run.attention == "dot"]


def adversaries(settings: Settings) -> list[Run]:
    """Table 5, unfrozen: of each model, one trained anew that imitates it and attends elsewhere; and one with lambda 0.

    With lambda 0 it only imitates: what an adversary loses beyond that is the price of other attention.
    """
    strengths = settings.lambdas or ADVERSARY_LAMBDAS[settings.profile]
    return [
        imitation(base, strength, settings.adversary_epochs)
        for base in of_each(settings, PROJECTIONS[:1])
        for strength in dict.fromkeys((0.0, *strengths))
    ]


def frozen_adversaries(settings: Settings) -> list[Run]:
    """Table 5, frozen: all weights are the model's, and only the attention learns, from a random start or the model's.

    The random start is of another seed: from the model's own, attention that training hardly moved would not leave it.
    """
    made = adversaries(replace(settings, lambdas=settings.frozen_lambdas or FROZEN_LAMBDAS[settings.profile]))
    frozen = [replace(run, options=(*run.options, ("trains", "attention"))) for run in made]
    elsewhere = [replace(run, seed=run.seed + OTHER_START) for run in frozen]
    return elsewhere + [replace(run, options=(*run.options, ("starts", "base"))) for run in frozen]


def untrained(trained: Trained) -> Trained:
    """A control: the model as it was before training, with the same initial weights."""
    return replace(trained, model=build(trained.run, trained.corpus, trained.vectors).eval(), history=(), chosen=0)


def before_training(trained: Sequence[Trained], of_states: Sequence[Quantity]) -> pd.DataFrame:
    """Rows of `lib.analysis.measure_all` of quantities of the hidden states, of each model `untrained`.

    States do not depend on the projection of the attention: they are measured under one. Predictions, which do, go.
    """
    one_of = {(one.run.encoder, one.run.seed): one for one in trained}
    measured = measure_all([untrained(one) for one in one_of.values()], of_states)
    measured = measured.drop(columns=["prediction", "probability"])
    projections = dict.fromkeys(one.run.projection for one in trained)
    return pd.concat([measured.assign(projection=name) for name in projections], ignore_index=True)


def printed_sds(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """The standard deviations over texts that the paper prints, beside ours.

    Args:
        ours: rows of `lib.analysis.summarise`. theirs: rows of `papers.published.table`.
    """
    keys = ["encoder", "projection", "quantity"]
    both = ours[[*keys, "sd_instances"]].merge(theirs.loc[theirs["sd"].notna(), [*keys, "sd"]], on=keys)
    return both.rename(columns={"sd_instances": "sd over texts", "sd": "theirs"})


def partners(rows: pd.DataFrame, of_models: pd.DataFrame) -> list[pd.DataFrame]:
    """Table 2, the taus along sparsegen's lambda, and table 5, the adversaries farthest away."""
    slopes = rows.reindex(columns=list(dict.fromkeys([*rows, "tau", "tau_low", "tau_high"])))
    slopes = slopes[slopes["tau"].notna() & slopes["quantity"].eq(OF_INPUT)].assign(quantity=SLOPE, unit="tau-b")
    slopes = slopes.assign(value=slopes["tau"], low=slopes["tau_low"], high=slopes["tau_high"])
    others = rows[rows["trains"].notna() & rows["value"].notna() & rows["projection"].eq("softmax")]
    farthest = others.groupby("trains")["lambda"].transform("max") == others["lambda"].where(others["lambda"] > 0)
    theirs = farthest & others["trains"].isin(["all", "attention"])
    return [slopes, others[theirs].assign(projection="")]  # the paper does not say which


# What its findings read

AWAY = 0.4  # nats of JSD: an adversary that stays nearer does not attend elsewhere
# Of published.csv, by what is trained; from all of the base's parameters, as theirs start, only some runs move.
VARIANTS = {"attention": "adversary_frozen", "all": "adversary_unfrozen", "attention from the base": "frozen_from_base"}
TO_HIDDEN, OWN = "inputs_to_states_entropy", "inputs_to_states_own_share"
SLOPE = "kendall_tau_lambda_vs_entropy_of_input_importance"
OF_INPUT = "entropy_of_gradient_of_input"


def tables(measured: pd.DataFrame, sweep: pd.DataFrame, adversaries: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What the findings read.

    Args:
        measured: every encoder under softmax and sparsemax, with taus, entropies and TO_HIDDEN.
        sweep: every encoder under sparsegen along the column lambda; where its attention is uniform it is left out.
        adversaries: rows of `measure_versus_base`, of the bases too, with entropy_of_attention.
    """
    taus = {
        name: [tau_name(("attention", f"{name}_of_{of}")) for of in ("hidden", "input")]
        for name in ("gradient", "leave_one_out")
    }
    gaps = {
        declare(f"gap_{name}", "tau-b", None, (-2, 2)): measured[one] - measured[less]
        for name, (one, less) in taus.items()
    }
    uneven = sweep.groupby(["encoder", "lambda"]).filter(lambda rows: not uniform(rows.drop(columns="lambda")))
    sweep = pd.concat([uneven, sweep[~sweep["encoder"].isin(uneven["encoder"])]])
    return {"measured": measured.assign(**gaps), "sweep": sweep, "adversaries": adversaries}


def lost_by_adversaries_trained_anew(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """M5b: accuracy of the imitation less that of the adversary, both trained anew."""
    yield from lost(tables["adversaries"], ["all"])


def lost_by_frozen_adversaries(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """M5: the same where only the attention learns."""
    yield from lost(tables["adversaries"], ["attention", "attention from the base"])


def lost(adversaries: pd.DataFrame, trains: Sequence[str]) -> Iterator[tuple]:
    """Accuracy of what only imitates less that of each adversary; of those that moved AWAY, unless none did."""
    theirs = adversaries[adversaries["trains"].isin(trains)]
    for key, some in split_models(theirs[theirs["lambda"] > 0], ["trains", "encoder", "projection", "lambda"]):
        where = {name: key[name] for name in ("trains", "encoder", "projection")}
        imitation = rows_where(theirs, where | {"lambda": 0}).assign(variant="imitation")
        base = rows_where(adversaries, {name: key[name] for name in ("encoder", "projection")} | {"variant": "base"})
        jsd = some.groupby("seed")["jsd"].mean()
        far = jsd.index[jsd >= AWAY] if (jsd >= AWAY).any() else jsd.index
        both = pd.concat([some, imitation])
        both = both[both["seed"].isin(far)]
        effect = effects_between(both, ["accuracy"], ({"variant": "imitation"}, {"variant": "adversary"}))[0]
        start = ", from the base" if "base" in key["trains"] else ""
        model = f"{model_name([key['encoder'], key['projection']])}, lambda {key['lambda']:g}{start}"
        yield {"model": model, "variant": VARIANTS[key["trains"]]}, [base], effect


PAPER = Paper(
    "sparsity",
    KEY,
    SparsitySettings,
    (models, sweep, spectrum, without_context, starts, adversaries, frozen_adversaries),
    partners=partners,
)
