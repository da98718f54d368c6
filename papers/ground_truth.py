"""Ours: which explanation finds what a model uses, and which of the papers' tests would have caught a liar?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import NonNegativeFloat
from pydantic.dataclasses import dataclass

from lib import importance, interventions
from lib.analysis import attention_on_rationale, attention_weights, correlate, measure_all, with_entropies
from lib.analysis.ground_truth import (
    CHANGES,
    LITTLE_MASS,
    SAME_ACCURACY,
    explanation_matrix,
    with_test_values,
)
from lib.analysis.statistics import Effect
from lib.analysis.summaries import rows_where
from lib.datasets import Own, spec, with_dials
from lib.quantity import RUN_COLUMNS, Quantity, declare, title_of
from lib.training import Run, Trained
from lib.training.fitting import evaluate
from papers.paper import Paper
from papers.settings import Attentions, Encoders, Settings, setting

KEY = "ours2026"


ENCODERS = {"quick": ("bilstm", "average", "conv"), "paper": ("bilstm", "average", "conv", "flan-rnn")}
# Small models from random vectors, of which dozens are trained in minutes.
SMALL = {"embedding_size": 50, "hidden_size": 64, "learning_rate": 3e-3, "epochs": 10, "patience": 10}
DIALS = {  # of planted reviews; one is turned, the others stay
    "cues": (1, 2, 3, 4),
    "negation": (0.0, 0.2, 0.4, 0.6),
    "distractors": (0, 1, 3, 6),
    "noise": (0.0, 0.1, 0.2),
}
TURNED = {"quick": {"cues": (1, 2, 4)}, "paper": DIALS}
LIARS = {"quick": 5, "paper": 40}  # and as many honest models, of other seeds
OF_LIARS = ("distractors=0", "negation=0")  # elsewhere a liar of this size loses more than .02 of its accuracy
LAMBDAS = {"quick": (0.1, 0.3), "paper": (0.03, 0.1, 0.3, 1.0)}
ADVERSARIES = {"quick": 2, "paper": 20}
ADVERSARY_LAMBDA = 0.01
STEADY = 0.01  # of the probability of a blinded text: less counts as no effect of its frame
ACCURACIES = ("on copies", "on clean texts", "without the shortcut")
FOLLOWS = 0.95  # accuracy on copies of a model that follows a shortcut
SHORTCUTS = {"single": ("bilstm", "average", "conv"), "pair": ("bilstm", "conv")}  # average encoders know no order
ATTACHED = declare("gradient_times_input_attached", "1", "gradient × input, through attention")
FROM_UNKNOWN = declare("integrated_gradients_unknown", "fraction", "integrated gradients, from unknown")


@dataclass(frozen=True)
class GroundTruthSettings(Settings):
    """Beside those of every notebook: the models, and the liars.

    Of LAMBDAS .3 is the smallest whose liars have a mass on dev's reasons below .01.
    """

    altering: ClassVar[tuple[str, ...]] = ("projection", "strength")

    encoders: Encoders | None = setting(None, "of lib.models.ENCODERS; None: those of the profile")
    attentions: Attentions = setting(("additive",), "of lib.models.ATTENTIONS")
    strength: NonNegativeFloat = setting(0.3, "lambda of the liars")


def made_up(settings: Settings) -> bool:
    """Whether the reason of each label is known: the texts are planted reviews."""
    return str(settings.dataset).partition(":")[0] == "planted"


def models(settings: Settings) -> list[Run]:
    """Every encoder with every attention, several seeds, as in `correlation`."""
    chosen = product(settings.encoders or ENCODERS[settings.profile], settings.attentions, settings.seeds_or())
    return [settings.run(*model) for model in chosen]


def variants(settings: Settings) -> list[Run]:
    """In profile paper the BiLSTM's variants: tied, with masked words, sparse, uniform, and a trained adversary."""
    if not made_up(settings) or settings.profile == "quick":
        return []
    found = []
    for seed in settings.seeds_or():
        base = settings.run("bilstm", "additive", seed)
        found += [
            settings.run("bilstm", "additive", seed, variant=kind, recipe="tutek2020") for kind in ("tying", "mlm")
        ]
        found += [replace(base, projection="sparsemax"), replace(base, variant="uniform")]
        found += [replace(base, variant="adversary", base=base, options=(("lambda", ADVERSARY_LAMBDA),))]
    return found


def small(settings: Settings, seeds: Iterable[int], encoder: str = "bilstm", dials: tuple[str, ...] = ()) -> list[Run]:
    """Small models of a few seconds each, on the dataset with other dials."""
    named = replace(settings, dataset=with_dials(settings.dataset, *dials) if dials else settings.dataset)
    named = replace(named, vectors="random") if made_up(settings) else named
    options = SMALL if made_up(settings) else {}
    return [named.run(encoder, "additive", seed, options=tuple(options.items())) for seed in seeds]


def dials(settings: Settings) -> list[Run]:
    """A small BiLSTM at each value of each of DIALS; planted reviews alone, with their own dials."""
    if settings.dataset != "planted":
        return []
    turned = [(f"{dial}={value}",) for dial, values in TURNED[settings.profile].items() for value in values]
    return [run for one in turned for run in small(settings, settings.first_seeds()[:3], dials=one)]


def blinded(settings: Settings) -> list[Run]:
    """Models that read the words of the reason alone."""
    if not made_up(settings):
        return []
    seeds = settings.first_seeds()
    encoders = settings.encoders or ENCODERS[settings.profile][: 1 if settings.profile == "quick" else 3]
    return [run for one in encoders for run in small(settings, seeds, one, ("blinded=yes",))]


def honest(settings: Settings) -> list[Run]:
    """The models that do not lie; planted reviews alone."""
    return small(settings, range(LIARS[settings.profile]), dials=OF_LIARS) if settings.dataset == "planted" else []


def liars(settings: Settings) -> list[Run]:
    """As many liars, of other seeds."""
    return [lying(run, settings.strength, LIARS[settings.profile]) for run in honest(settings)]


def lying(run: Run, strength: float, further: int = 0) -> Run:
    """The liar of an honest run, of a seed that is so much further."""
    options = (*run.options, ("lambda", strength))
    return replace(run, variant="liar", seed=run.seed + further, options=options)


def lambdas(settings: Settings) -> list[Run]:
    """Liars of one seed with each of LAMBDAS."""
    return [
        lying(run, strength, LIARS[settings.profile])
        for run in honest(settings)[:1]
        for strength in LAMBDAS[settings.profile]
    ]


def adversaries(settings: Settings) -> list[Run]:
    """The second kind of liar: an adversary against each of some honest models."""
    own = tuple((name, value) for name, value in SMALL.items() if name != "patience")
    aim = (*own, ("lambda", ADVERSARY_LAMBDA))
    chosen = honest(settings)[: ADVERSARIES[settings.profile]]
    return [replace(run, variant="adversary", base=run, options=aim) for run in chosen]


def guided(settings: Settings) -> list[Run]:
    """In profile paper an average encoder guided by the attention of each honest model and each liar."""
    if settings.profile == "quick":
        return []
    return [
        replace(run, encoder="average", variant="guide_base", base=run, options=tuple(SMALL.items()))
        for run in (*honest(settings), *liars(settings))
    ]


def shortcuts(settings: Settings) -> list[Run]:
    """Models of texts with either shortcut, where the dataset is one of this project's."""
    if isinstance(settings.dataset, Own) or "shortcut=" in settings.dataset or spec(settings.dataset).sentences:
        return []
    seeds = settings.first_seeds()
    kinds = {"pair": ("bilstm",)} if settings.profile == "quick" else SHORTCUTS
    of_kind = ((kind, one) for kind, encoders in kinds.items() for one in encoders)
    return [run for kind, one in of_kind for run in small(settings, seeds, one, (*easy(settings), f"shortcut={kind}"))]


def easy(settings: Settings) -> tuple[str, ...]:
    """Dials with which planted reviews are learned from the half of train that no shortcut labels."""
    return ("cues=4", *OF_LIARS) if settings.dataset == "planted" else ()


def clean(settings: Settings) -> list[Run]:
    """The same models without a shortcut."""
    with_it = {(run.encoder, run.seed) for run in shortcuts(settings)}
    return [run for encoder, seed in sorted(with_it) for run in small(settings, [seed], encoder, easy(settings))]


def explanations(steps: int = 50) -> list[Quantity]:
    """Every explanation of a text: a value for each token, the largest first. steps: of integrated gradients."""
    make = importance.quantity
    return [
        attention_weights,
        importance.attention_times_norm,
        importance.attention_times_contribution,
        make("gradient_times_input", importance.gradient_times_input),
        make(ATTACHED, importance.gradient_times_input, through_attention=True),
        make("gradient_of_input", importance.gradient),
        make("integrated_gradients", importance.integrated_gradients, steps=steps),
        make(FROM_UNKNOWN, importance.integrated_gradients, steps=steps, baseline="unknown"),
        importance.leave_one_out_with_sign,
        make("leave_one_out_of_hidden", importance.leave_one_out, of="hidden"),
    ]


def changes() -> list[Quantity]:
    """What the integrated gradients of a text should sum to, from either baseline."""
    change = importance.change_from_baseline
    return [importance.quantity(name, change, baseline=baseline) for name, baseline in CHANGES.values()]


def tests(draws: int, rationales: list) -> list[Quantity]:
    """What the papers' tests need of each text, with the mass on the reason and what deleting it does."""
    rankings = {name: importance.RANKINGS[name] for name in ("attention", "gradient")}
    return [
        attention_weights,
        importance.quantity("gradient_times_input", importance.gradient_times_input),
        importance.quantity("leave_one_out_of_hidden", importance.leave_one_out, of="hidden"),
        interventions.permutation_effect(draws),
        interventions.adversary(0.01, "exact"),
        interventions.largest_jsd(),
        interventions.substituted(draws),
        interventions.single_erasure({"attention": rankings["attention"]}),
        interventions.until_flip(rankings, orders=1),
        interventions.without_reason(rationales),
    ]


def tested(trained: Sequence[Trained], draws: int) -> pd.DataFrame:
    """Honest models and liars, measured with `tests` on the test texts."""
    if not trained:
        return pd.DataFrame()
    rationales = [text.rationale for text in trained[0].corpus.test.instances]
    instances = measure_all(trained, [*tests(draws, rationales), attention_on_rationale(rationales)])
    pairs = [("attention", "gradient_times_input"), ("attention", "leave_one_out_of_hidden")]
    return with_test_values(with_entropies(correlate(instances, pairs), ["attention"]))


def guided_f1(trained: Sequence[Trained]) -> dict[tuple[str, int], float]:
    """The F1 on test of each MLP, by the variant and seed of the model that guides it."""
    return {
        (one.run.base.variant, one.run.base.seed): evaluate(one.model, one.batches("test"))["f1"] for one in trained
    }


def chosen_lambda(trained: Sequence[Trained]) -> pd.DataFrame:
    """Liars by their lambda: accuracy on dev, the mass on the reason there, and which is the smallest below .01."""
    rows = []
    for one in trained:
        mass = attention_on_rationale([text.rationale for text in one.corpus.dev.instances])
        found = measure_all([one], [mass], "dev")
        right = (found["label"] == found["prediction"]).mean()
        rows.append({"lambda": one.run.option("lambda"), "accuracy": right, "mass": found[mass.name].mean()})
    table = pd.DataFrame(rows, columns=["lambda", "accuracy", "mass"])
    little = table.loc[table["mass"] < LITTLE_MASS, "lambda"]
    return table.assign(chosen=table["lambda"].eq(little.min()).map({True: "smallest below .01", False: ""}))


def follows_shortcut(with_it: Sequence[Trained], without: Sequence[Trained]) -> pd.DataFrame:
    """Each model's accuracy on copies with the shortcut and on clean texts, that of the model without, and `counts`."""
    clean = {(one.run.encoder, one.run.seed): evaluate(one.model, one.batches("test"))["accuracy"] for one in without}
    rows = []
    for one in with_it:
        found = measure_all([one], [attention_weights])
        right = found["label"] == found["prediction"]
        copy = pd.Series([bool(text.rationale) for text in one.corpus.test.instances], index=found.index)
        row = {"dataset": one.run.dataset, "encoder": one.run.encoder, "seed": one.run.seed}
        row |= {"on copies": right[copy].mean(), "on clean texts": right[~copy].mean()}
        rows.append(row | {"without the shortcut": clean[one.run.encoder, one.run.seed]})
    table = pd.DataFrame(rows, columns=[*("dataset", "encoder", "seed"), *ACCURACIES])
    near = table["on clean texts"] >= table["without the shortcut"] - SAME_ACCURACY
    return table.assign(counts=(table["on copies"] > FOLLOWS) & near)


def counts(one: Trained, follows: pd.DataFrame) -> bool:
    """Whether a model counts, by `follows_shortcut`."""
    own = {"dataset": one.run.dataset, "encoder": one.run.encoder, "seed": one.run.seed}
    return bool(rows_where(follows, own)["counts"].any())


def matrix(reasons, turned, framed, by_hand, copies, human, columns: Sequence[str]) -> pd.DataFrame:
    """`explanation_matrix` of the BiLSTM in each part; redundancy and negation at the largest value of their dial.

    Of the models that are wired by hand all three, where words are deleted. The shortcut is the pair of words.
    """
    parts = {"label's reason": reasons, "redundancy": at(turned, "cues"), "negation": at(turned, "negation")}
    deleted = by_hand[by_hand["dataset"].str.endswith("deleted")]
    deleted = deleted.assign(instance=range(len(deleted)), encoder="bilstm", variant="base")
    parts |= {
        "blinded": framed,
        "wired (three models)": deleted.assign(projection="softmax"),
        "shortcut (pair)": copies[copies["dataset"].str.endswith("pair")],
        "human": human,
    }
    own = {"encoder": "bilstm", "variant": "base", "projection": "softmax"}
    plain = {part: rows_where(rows, own) if len(rows) else rows for part, rows in parts.items()}
    return explanation_matrix(plain, columns)


def at(turned: pd.DataFrame, dial: str) -> pd.DataFrame:
    """The rows of the largest value of a dial."""
    return turned[turned["dataset"].str.endswith(f":{dial}={DIALS[dial][-1]}")]


# What its findings read


def tables(
    answers: pd.DataFrame,
    reasons: pd.DataFrame,
    copies: pd.DataFrame,
    suspicion: pd.DataFrame,
    explanations: Sequence[str],
) -> dict[str, pd.DataFrame]:
    """What the findings read: of the models and of those with shortcuts a row for each text and explanation.

    Args:
        answers: every model on all texts, with attention_weights.
        reasons, copies: of `lib.analysis.ground_truth.explained`. suspicion: of `suspicions`, of the models that count.
        explanations: their columns.
    """
    reasons = reasons[reasons["variant"] != "adversary"] if len(reasons) else reasons
    return {
        "answers": with_entropies(answers, ["attention"]),
        "reasons": by_explanation(reasons, explanations),
        "copies": by_explanation(copies, explanations),
        "suspicion": suspicion,
    }


def by_explanation(instances: pd.DataFrame, explanations: Sequence[str]) -> pd.DataFrame:
    """A row for each text and explanation (`of`): reason_top is whether its top word is part of the reason."""
    if instances.empty:
        return instances
    declare("reason_top", "fraction")
    instances = with_entropies(instances, ["attention"])
    kept = [*RUN_COLUMNS, "seed", "instance", "label", "prediction", "entropy_of_attention", "reason_top_chance"]
    parts = [
        instances[kept].assign(of=title_of(name), reason_top=instances[f"reason_top_{name}"].astype(float))
        for name in explanations
    ]
    return pd.concat(parts, ignore_index=True)


def detection(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """G2: each test's AUROC, over pairs of a liar and an honest model, with DeLong's standard error (1988)."""
    suspicion, dataset = tables["suspicion"], tables["answers"]["dataset"].iloc[0]
    kinds = suspicion.index.get_level_values("variant") if len(suspicion) else ()
    pairs = min((kinds == "liar").sum(), (kinds == "base").sum()) if len(suspicion) else 0
    for test in suspicion if pairs > 1 else ():
        liars, honest = (suspicion.loc[kinds == kind, test].dropna().to_numpy()[:pairs] for kind in ("liar", "base"))
        if min(len(liars), len(honest)) == pairs:
            above = (liars[:, None] > honest) + 0.5 * (liars[:, None] == honest)
            values = above.mean(axis=1) + above.mean(axis=0) - above.mean()
            error = max(values.std(ddof=1) / np.sqrt(pairs), 1 / pairs)  # at least that of one pair
            area = float(values.mean())
            effect = Effect("auroc", area, dict.fromkeys(range(pairs), area), float(error), pairs)
            yield {"model": test, "of": test, "dataset": dataset}, [pd.DataFrame()], effect


PAPER = Paper(
    "ground_truth",
    KEY,
    GroundTruthSettings,
    (models, variants, dials, blinded, honest, liars, lambdas, adversaries, guided, shortcuts, clean),
)
