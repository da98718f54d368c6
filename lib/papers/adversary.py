"""Wiegreffe & Pinter (2019)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd

from lib.analysis import difference, score_difference, summarise
from lib.analysis.tradeoff import curvature
from lib.models import ATTENTIONS
from lib.papers.claim import Claim, adversary_of, compared, verdict
from lib.papers.paper import Paper
from lib.papers.settings import Settings, setting
from lib.quantity import declare
from lib.training import Run
from lib.training.losses import DIVERGENCES, TVDS
from lib.training.runs import OF_VARIANTS

KEY = "wiegreffe2019"

# Runs

BASE_SEEDS = {"quick": 3, "paper": 9}  # the base and others: eight, as Wiegreffe & Pinter have it
ADVERSARY_SEEDS = {"quick": 2, "paper": 5}
# Wiegreffe & Pinter's of SST is 5.25e-4, that of their table 3 is 1e-3.
LAMBDAS = {"quick": (5e-4, 1e-3, 2e-3), "paper": (3e-4, 5.25e-4, 1e-3)}
# With a frozen encoder attention hardly moves at those; far above, the unbounded divergence grows without end.
FROZEN_LAMBDAS = {"quick": (1e-3, 5e-3, 2e-2), "paper": (5.25e-4, 1e-3, 5e-3)}


@dataclass(frozen=True)
class AdversarySettings(Settings):
    """Beside those of every notebook.

    lambdas, frozen_lambdas, adversary_epochs    of the trained adversaries, and most epochs; none or 0: the profile's
    divergence, tvd                              in the adversary's loss; tvd half: as in the paper's code
    over_seeds                                   how a text's distances to other seeds become one number
    """

    attention: str = setting("additive", allowed=ATTENTIONS)
    lambdas: tuple[float, ...] = ()
    frozen_lambdas: tuple[float, ...] = ()
    adversary_epochs: int = 0
    divergence: str = setting(OF_VARIANTS["adversary"]["divergence"], allowed=DIVERGENCES, alters=True)
    tvd: str = setting(OF_VARIANTS["adversary"]["tvd"], allowed=TVDS, alters=True)
    over_seeds: str = setting("median", allowed=("median", "max"), alters=True)


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
    aim = {"divergence": settings.divergence, "tvd": settings.tvd, "trains": trains}
    aim = tuple((name, value) for name, value in aim.items() if value != OF_VARIANTS["adversary"][name])
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

    The trained adversary that guides is that of the largest lambda, as in the paper's table 3.
    """
    strongest = max(settings.lambdas or LAMBDAS[settings.profile])
    found = []
    for adversary in sweep(replace(settings, lambdas=[strongest])):
        learned = replace(adversary.base, encoder="average")
        guided = [("base", adversary.base), ("adversary", adversary), ("instance_adversary", adversary.base)]
        found += [replace(learned, variant="uniform"), learned]
        found += [replace(learned, variant=f"guide_{kind}", base=base) for kind, base in guided]
    return found


# Claims

ON_PAR = 0.02  # of F1: less than the papers' own spread between two reports of one model
FAR = 0.4  # nats: from here on their adversary counts as one
BASE, UNIFORM = {"encoder": "bilstm", "variant": "base"}, {"encoder": "bilstm", "variant": "uniform"}


def claims(
    models: pd.DataFrame,
    of_seeds: pd.DataFrame,
    guided: pd.DataFrame,
    adversaries: pd.DataFrame,
    chosen: float | None,
    per_instance: pd.DataFrame,
    curves: pd.DataFrame,
) -> list[Claim]:
    """Each claim with its verdict.

    Args:
        models: measured base and uniform models. of_seeds: the base's rows of `across_seeds`, with the adversary's JSD.
        guided: the MLPs under each guide. adversaries: `measure_versus_base` of the sweep; chosen: its lambda, or None.
        per_instance: the bases' rows, their jsd and tvd those of the per-instance adversary.
        curves: rows of `curvatures`; those of all texts are judged.
    """
    strongest = adversaries["lambda"].max() if chosen is None else chosen
    return [
        attention_is_needed(models),
        seeds_move_less(of_seeds),
        *guide_better(guided),
        is_on_par(models, adversaries, chosen),
        per_instance_exaggerates(adversaries, strongest, per_instance),
        *leaves_the_reason(models, adversaries, strongest),
        *(is_convex(curve) for _, curve in curves[curves["texts"] == "all texts"].iterrows()),
    ]


def f1_compared(row: pd.Series, first: str, second: str) -> str:
    """F1: first 0.830, second 0.820; difference +0.010 [-0.010, +0.030], p 0.31 over texts"""
    return f"F1: {compared(row, first, second)}, p {row['p']:.2g} over texts"


def attention_is_needed(models: pd.DataFrame) -> Claim:
    """Section 3.2: attention is not explanation where it is not needed; a verdict on the dataset."""
    row = score_difference(models, "f1", (BASE, UNIFORM))
    claim = "Learned attention classifies better than equal weights do"
    evidence = f1_compared(row, "learned", "uniform")
    return Claim(KEY, "attention is needed", claim, "BiLSTM", verdict(row["low"], row["high"]), evidence)


def seeds_move_less(of_seeds: pd.DataFrame) -> Claim:
    """Section 3.3: another seed moves the attention less than the per-instance adversary does."""
    adversary = of_seeds[adversary_of(of_seeds)]
    gap = adversary - of_seeds["jsd_of_seeds"]
    row = summarise(of_seeds.assign(jsd_gap=gap), [declare("jsd_gap", "nats")]).iloc[0]
    evidence = (
        f"mean JSD: other seeds {of_seeds['jsd_of_seeds'].mean():.3f}, per-instance adversary {adversary.mean():.3f} "
        f"nats; {row['value']:.3f} more [{row['low']:.3f}, {row['high']:.3f}] over the texts of one base"
    )
    claim = "Another seed moves the attention less than an adversary per instance"
    return Claim(KEY, "seeds move attention less", claim, "BiLSTM", verdict(row["low"], row["high"]), evidence)


def guide_better(guided: pd.DataFrame) -> Iterator[Claim]:
    """Section 3.4 and table 3: attention that helps a model without context holds something of its own."""
    better = "The base's attention is a better guide than"
    claims = (
        ("its attention guides", "The base's attention guides an MLP better than equal weights", "uniform"),
        ("better than learned", "The base's attention guides an MLP better than what that learns", "base"),
        ("adversaries misguide", f"{better} a trained adversary's", "guide_adversary"),
        ("adversaries per instance misguide", f"{better} the per-instance adversary's", "guide_instance_adversary"),
    )
    for short, claim, variant in claims:
        row = score_difference(guided, "f1", ({"variant": "guide_base"}, {"variant": variant}))
        second = "learned" if variant == "base" else variant.removeprefix("guide_").replace("_", " ")
        evidence = f1_compared(row, "base", second)
        yield Claim(KEY, short, claim, "MLP", verdict(row["low"], row["high"]), evidence)


def is_on_par(models: pd.DataFrame, adversaries: pd.DataFrame, chosen: float | None) -> Claim:
    """Table 4: the adversary, at least FAR from the base's attention, classifies as well as the base."""
    claim = f"A trained adversary {FAR} nats away classifies as well as the base, to {ON_PAR} of F1"
    short = "a trained adversary is on par"
    if chosen is None:
        most = adversaries.groupby("lambda")["jsd"].mean().max()
        why = f"no lambda of the sweep has a mean dev JSD of {FAR} nats; the largest mean on test is {most:.3f}"
        return Claim(KEY, short, claim, "BiLSTM", "undecided", why)
    trained = adversaries[adversaries["lambda"] == chosen]
    between = {"encoder": "bilstm", "variant": "adversary"}, BASE
    row = score_difference(pd.concat([models, trained]), "f1", between)
    evidence = f"lambda {chosen:g}, mean JSD {trained['jsd'].mean():.3f} nats: {f1_compared(row, 'adversary', 'base')}"
    return Claim(KEY, short, claim, "BiLSTM", verdict(row["low"], row["high"], -ON_PAR), evidence)


def per_instance_exaggerates(adversaries: pd.DataFrame, strongest: float, per_instance: pd.DataFrame) -> Claim:
    """Section 4: the per-instance adversary lies well below the curve of the trained ones.

    Below the line from the base to the trained adversary: the area between is then positive.
    """
    known = per_instance[per_instance["jsd"].notna()]
    trained = adversaries[(adversaries["lambda"] == strongest) & adversaries["instance"].isin(known["instance"])]
    both = pd.concat([known.assign(place=1.0), trained.assign(place=2.0)])
    row = curvature(both, by="place", from_base=True)
    means = both.groupby("place")[["jsd", "tvd"]].mean()
    evidence = (
        f"per instance: JSD {means.loc[1, 'jsd']:.3f} nats at TVD {means.loc[1, 'tvd']:.3f}; trained (lambda "
        f"{strongest:g}): {means.loc[2, 'jsd']:.3f} at {means.loc[2, 'tvd']:.3f}; area below the line from the base to "
        f"the trained one {row['area']:.4f} [{row['low']:.4f}, {row['high']:.4f}] nats x fraction"
    )
    claim = "For the same change of prediction an adversary per instance goes further than one model for all texts"
    return Claim(KEY, "per instance exaggerates", claim, "BiLSTM", verdict(row["low"], row["high"]), evidence)


def leaves_the_reason(models: pd.DataFrame, adversaries: pd.DataFrame, strongest: float) -> Iterator[Claim]:
    """Beyond the paper: where the rationale is known, an adversary attends less to it."""
    name = "attention_on_rationale"
    if name not in models or models[name].isna().all():
        return
    both = pd.concat([models[models["variant"] == "base"], adversaries[adversaries["lambda"] == strongest]])
    row = difference(both, name, ({"variant": "base"}, {"variant": "adversary"}), paired=True)
    evidence = f"lambda {strongest:g}, attention on the words that decide the label: "
    evidence += compared(row, "base", "adversary")
    claim = "A trained adversary takes attention off the words that decide the label"
    word = verdict(row["low"], row["high"])
    yield Claim(KEY, "an adversary leaves the reason", claim, "BiLSTM", word, evidence)


def is_convex(curve: pd.Series) -> Claim:
    """Section 4: a convex curve supports "attention is not explanation", a concave one opposes it."""
    evidence = (
        f"area between curve and chord {curve['area']:.4f} [{curve['low']:.4f}, {curve['high']:.4f}] nats x fraction: "
        f"{curve['word']}"
    )
    if curve["points"] < 3:
        evidence = f"{curve['points']} values of lambda make no curve"
    claim = "The curve of TVD over JSD is convex: attention moves before the prediction does"
    word = verdict(curve["low"], curve["high"])
    return Claim(KEY, "attention is easily moved", claim, curve["adversary"], word, evidence)


def partners(rows: pd.DataFrame, of_models: pd.DataFrame) -> list[pd.DataFrame]:
    """Tables 3 and 4: guides, and the adversary whose lambda dev chose, else the largest.

    Their TVD is half of the two-class TVD, as in their code.
    """
    adversaries = rows[rows["trains"].eq("all") & rows["value"].notna()]
    dev = rows[rows["quantity"].eq("dev")].reindex(columns=["lambda", "chosen"])
    chosen = dev.loc[dev["chosen"].astype(str).eq("True"), "lambda"].max()
    chosen = adversaries["lambda"].max() if pd.isna(chosen) else chosen
    adversaries = adversaries[adversaries["lambda"].eq(chosen) & adversaries["quantity"].ne("tvd")]
    softmax = of_models["attention"].eq("additive") & of_models["projection"].eq("softmax")
    guided = of_models[softmax & of_models["variant"].astype(str).str.startswith("guide_")].assign(encoder="mlp")
    imposed = guided["variant"].ne("guide_learned")
    attention, projection = guided["attention"].mask(imposed, "imposed"), guided["projection"].mask(imposed, "")
    guided = guided.assign(attention=attention, projection=projection)
    return [adversaries.replace({"quantity": {"tvd_half": "tvd"}}), guided]


PAPER = Paper(
    "adversary",
    KEY,
    "Wiegreffe & Pinter 2019",
    "Sarah Wiegreffe and Yuval Pinter (2019): Attention is not not Explanation. EMNLP.",
    "That a text's attention can be replaced does not rule out explanation: trained models are harder to replace",
    AdversarySettings,
    (base_seeds, uniform, guides, sweep, frozen_sweep),
    claims,
    partners=partners,
    seconds=35.0,
)
