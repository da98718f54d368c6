"""Ours: which explanation finds what a model uses, and which of the papers' tests would have caught a liar?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from pydantic.dataclasses import dataclass

from lib import importance, interventions
from lib.analysis import add_entropies, attention_on_rationale, attention_weights, correlate, measure_all
from lib.analysis.ground_truth import SAME_ACCURACY, detections
from lib.analysis.statistics import Effect
from lib.analysis.summaries import DROPS, answer_table, score_statistic
from lib.datasets import spec, with_dials
from lib.datasets.pretrained import is_pretrained
from lib.models.classifier import Displayed
from lib.quantity import CHANGE_BOUNDS, RUN_COLUMNS, Quantity, declare, title_of
from lib.training import Run, Trained
from lib.training.fitting import evaluate
from lib.training.runs import NEVER_ZERO
from lib.training.targets import TARGETS
from papers.paper import Paper
from papers.settings import Attentions, Encoders, OwnModel, Settings, setting

ENCODERS = {"quick": ("bilstm", "average", "conv")}
ENCODERS["paper"] = (*ENCODERS["quick"], "flan-rnn", "transformer")
# Small models from random vectors, of which dozens are trained in minutes.
SMALL = {"embedding_size": 50, "hidden_size": 64, "learning_rate": 3e-3, "epochs": 10, "patience": 10}
DIALS = {  # of planted reviews; one is turned, the others stay
    "cues": (1, 2, 3, 4),
    "negation": (0.0, 0.2, 0.4, 0.6),
    "distractors": (0, 1, 3, 6),
    "noise": (0.0, 0.1, 0.2),
}
TURNED = {"quick": {"cues": (1, 2, 4)}, "paper": DIALS}
MODELS = {"quick": 2, "paper": 20}  # of each kind, honest or lying, with seeds of its own
OF_LIARS = ("distractors=0", "negation=0")  # elsewhere a liar of this size loses more than .02 of its accuracy
HONEST = ("base", "even", "peaked")  # as they come, and with attention pulled to the reason
LIARS = {"spread": "even", "smuggler": "peaked", "ranker": "peaked"}  # and the honest models that attend as evenly
LIARS |= {"coded": "base", "displayed": "peaked", "adversary": "peaked"}
KINDS = {"quick": ("base", "even", "peaked", "spread", "smuggler"), "paper": (*HONEST, *LIARS)}
PAIRS = {  # name -> liars, honest models
    "2×2": (("spread", "smuggler"), ("even", "peaked")),
    **{liar: ((liar,), (honest,)) for liar, honest in LIARS.items()},
    "all": (tuple(LIARS), HONEST),
}
VARIANTS = [{"variant": kind, "recipe": "tutek2020"} for kind in ("tying", "mlm")]
VARIANTS += [{"projection": "sparsemax"}, {"variant": "uniform"}]
STEPS = {"quick": 20, "paper": 50}  # of integrated gradients
WORDS = {"quick": 9, "paper": 12}  # of a planted text, whose subsets are all tried; of others the first
COMPLETE = 1e-3  # of the change of the prediction: integrated gradients that miss more of it are not used
SHORTCUTS = {"single": ("bilstm", "average", "conv"), "pair": ("bilstm", "conv")}  # average encoders know no order
MOST = {"quick": 60, "paper": 200}  # texts of each model that are explained; of planted ones at most 100
MARKED = ("eraser_movies", "imdb_counterfactual")  # people know the reason of these texts: they get no shortcut
ATTACHED = declare("gradient_times_input_attached", "1", "gradient × input, through attention")
FROM_UNKNOWN = declare("integrated_gradients_unknown", "fraction", "integrated gradients, from unknown")
LEAVE_ONE_OUT = Quantity(  # with its sign: how far the predicted class's probability falls
    "leave_one_out_of_input", lambda *of: importance.leave_one_out_with_sign(*of)["signed"], "fraction", CHANGE_BOUNDS
)
OF_HIDDEN = "leave_one_out_of_hidden"
SCORES = ("reason_top", "model_top")  # of explanations, in findings
MOVED = 0.05  # of the probability: permuting changes the prediction (Jain & Wallace 2019, section 4.2.2)
TESTS = {  # of a model: the column of its texts, its sign, which direction the paper takes for a liar, what it reads
    "J: agrees little with the gradient": ("kendall_tau_attention_vs_gradient_times_input", -1, "words"),
    "J: permuting moves few texts": ("permutation_moves", -1, "states"),
    "J: the adversary gets far": ("adversary_share", 1, "states"),
    "W: uniform attention costs no F1": ("f1_drop_uniform", 1, "states"),
    "W: no guide for an MLP": ("guided", -1, "words"),
    "S: the top item flips no decision": ("top_attention_flip", -1, "states"),
    "S: flips later than the gradient": ("flips_later", 1, "states"),
    "T: permuting costs no F1": ("f1_drop_permuted", 1, "states"),
    "M: agrees little with the states": ("kendall_tau_attention_vs_leave_one_out_of_hidden", -1, "states"),
    "ours: the top word matters little": ("top_word_share", -1, "words"),
    "trivial: attention is spread": ("entropy_of_attention", 1, "weights"),
}
READS = {test: reads for test, (_, _, reads) in TESTS.items()}
OF_MODELS = {"accuracy": "accuracy", "attention_on_rationale": "mass on the reason"}
OF_MODELS |= {"without_reason": "need of the reason", "entropy_of_attention": "entropy"}
LITTLE_MASS = 0.05  # of attention on the reason
SAME_NEED = 0.05  # of the probability: how far the prediction moves without the reason


@dataclass(frozen=True)
class GroundTruthSettings(Settings):
    """Beside those of every notebook: the models."""

    encoders: Encoders | None = setting(None, "of lib.models.ENCODERS; None: those of the profile")
    attentions: Attentions = setting(("additive",), "of lib.models.ATTENTIONS")
    model: OwnModel = None

    def __post_init__(self):
        super().__post_init__()
        if spec(self.dataset).sentences:  # into which no shortcut is put
            allowed = "planted, or a dataset of docs/data.md that is not split into sentences"
            raise ValueError(f"{self.dataset!r} is split into sentences; allowed: {allowed}")


def is_planted(dataset: object, turned: bool = True) -> bool:
    """Whether the reason of each label is known: the texts are planted reviews; unless `turned`, no dial is."""
    return str(dataset).partition(":" if turned else ":subwords=")[0] == "planted"


# --- what is trained


def models(settings: Settings) -> list[Run]:
    """Every encoder with every attention, several seeds, as in `correlation`."""
    chosen = product(settings.encoders or ENCODERS[settings.profile], settings.attentions, settings.seeds_or())
    return [settings.run(*model) for model in chosen]


def variants(settings: Settings) -> list[Run]:
    """In profile paper our BiLSTM's variants: tied, with masked words, sparse and uniform."""
    ours = is_planted(settings.dataset) and settings.profile != "quick" and not spec(settings.dataset).subwords
    bases = [settings.run("bilstm", "additive", seed) for seed in settings.seeds_or() if ours and not settings.model]
    return [replace(base, **change) for base in bases for change in VARIANTS]


def small(settings: Settings, seeds: Iterable[int], encoder: str = "bilstm", dials: tuple[str, ...] = ()) -> list[Run]:
    """Models, of planted reviews small ones of a few seconds each, on the dataset with other dials."""
    named = replace(settings, dataset=with_dials(settings.dataset, *dials) if dials else settings.dataset)
    light = is_planted(settings.dataset) and not is_pretrained(encoder)
    named = replace(named, vectors="random") if light else named
    return [named.run(encoder, "additive", seed, options=tuple(SMALL.items()) if light else ()) for seed in seeds]


def dials(settings: Settings) -> list[Run]:
    """A small BiLSTM at each value of each dial that is TURNED; planted reviews alone, ours alone."""
    turned = TURNED[settings.profile] if settings.dataset == "planted" and not settings.model else {}
    places = [(f"{dial}={value}",) for dial, values in turned.items() for value in values]
    return [run for place in places for run in small(settings, settings.first_seeds()[:3], dials=place)]


def kinds(settings: Settings) -> list[Run]:
    """Honest models and liars of each kind, all but adversaries with own seeds; planted reviews alone, ours alone."""
    encoder, runs = next(filter(is_pretrained, settings.encoders or ()), "bilstm"), {}
    number, wanted = MODELS[settings.profile], KINDS[settings.profile]
    if is_pretrained(encoder):  # minutes each
        number, wanted = max(number // 5, 1), KINDS["quick"]
    ours = is_planted(settings.dataset, turned=False) and not settings.model
    for place, kind in enumerate(wanted if ours else ()):
        honest = small(settings, range(place * number, (place + 1) * number), encoder, OF_LIARS)
        to = (("target", kind),) if kind in TARGETS else ()
        runs[kind] = [replace(run, variant="pulled" if to else "base", options=run.options + to) for run in honest]
    runs.pop("displayed", None)  # by an honest model, with the weights of a smuggler
    aim = () if settings.projection in NEVER_ZERO else (("divergence", "jsd"),)
    options = (*((name, value) for name, value in SMALL.items() if name != "patience"), ("lambda", 0.01), *aim)
    lie = {"variant": "adversary", "options": options}
    runs["adversary"] = [replace(base, base=base, **lie) for base in runs.get("base", ()) if "adversary" in runs]
    return [run for of_kind in runs.values() for run in of_kind]


def kind_of(run: Run) -> str:
    """Of KINDS."""
    return run.option("target") if run.variant == "pulled" else run.variant


def guided(settings: Settings) -> list[Run]:
    """In profile paper an average encoder guided by the attention of each of them."""
    guides = kinds(settings) if settings.profile != "quick" else []
    mlp = {"encoder": "average", "vectors": "random", "options": tuple(SMALL.items())}
    kind = {"adversary": "guide_adversary"}
    return [replace(run, base=run, variant=kind.get(run.variant, "guide_base"), **mlp) for run in guides]


def easy(settings: Settings) -> tuple[str, ...]:
    """Dials of planted reviews into which a shortcut is put, since half of train must do; none where one is turned."""
    return ("cues=4", *OF_LIARS) if is_planted(settings.dataset, turned=False) else ()


def shortcuts(settings: Settings) -> list[Run]:
    """Models of texts with either shortcut, in quick the pair, where they have none and people marked no reason."""
    if "shortcut=" in settings.dataset or settings.dataset in MARKED:
        return []
    seeds = settings.first_seeds()[: 1 if settings.model else None]  # one's own is given the texts once
    same = ("bilstm",) if settings.model else tuple(filter(is_pretrained, settings.encoders or ()))
    kinds = {"pair": ("bilstm",)} if settings.profile == "quick" else SHORTCUTS
    chosen = [(encoder, (*easy(settings), f"shortcut={kind}")) for kind, of in kinds.items() for encoder in same or of]
    return [run for model in chosen for run in small(settings, seeds, *model)]


def clean(settings: Settings) -> list[Run]:
    """The same models without a shortcut."""
    with_it = {(run.encoder, run.seed) for run in shortcuts(settings)}
    return [run for encoder, seed in sorted(with_it) for run in small(settings, [seed], encoder, easy(settings))]


# --- what is measured


def most_texts(settings: Settings) -> int:
    """How many texts of each model are explained."""
    return min(MOST[settings.profile], 100) if is_planted(settings.dataset) else MOST[settings.profile]


def explanations(settings: Settings) -> list[Quantity]:
    """Every explanation of a text: a value for each token, the largest first; the last are the Shapley values."""
    make, integrated = importance.quantity, importance.integrated_gradients
    enough = {"steps": STEPS[settings.profile], "tolerance": COMPLETE}
    ours = [attention_weights, importance.attention_times_norm, importance.attention_times_contribution]
    ours += [make("gradient_times_input", importance.gradient_times_input)]
    ours += [make(ATTACHED, importance.gradient_times_input, through_attention=True)]
    ours += [make("gradient_of_input", importance.gradient), make("integrated_gradients", integrated, **enough)]
    ours += [make(FROM_UNKNOWN, integrated, baseline="unknown", **enough)]
    ours += [LEAVE_ONE_OUT, make(OF_HIDDEN, importance.leave_one_out, of="hidden")]
    all_of = is_planted(settings.dataset) and not spec(settings.dataset).subwords
    words = WORDS[settings.profile if all_of else "quick"]
    return [*ours, importance.self_attention, interventions.shapley(words)]


# --- the papers' tests against liars


def by_kind(trained: Sequence[Trained]) -> dict[str, list[Trained]]:
    """The models of each kind, and honest ones that display the attention of smugglers."""
    groups = {}
    for one in trained:
        groups.setdefault(kind_of(one.run), []).append(one)
    pairs = zip(groups.get("base", ()), groups.get("smuggler", ()), strict=True)
    displayed = [replace(liar, model=Displayed(base.model, liar.model)) for base, liar in pairs]
    return groups | ({"displayed": displayed} if displayed else {})


def tested(trained: Sequence[Trained]) -> pd.DataFrame:
    """Honest models and liars, with what the papers' tests need of each test text; no row of no model."""
    if not trained:
        return pd.DataFrame()
    rationales = [text.rationale for text in trained[0].corpus.test.instances]
    rankings = {name: importance.RANKINGS[name] for name in ("attention", "gradient")}
    quantities = [attention_weights, importance.quantity("gradient_times_input", importance.gradient_times_input)]
    quantities += [importance.quantity(OF_HIDDEN, importance.leave_one_out, of="hidden"), importance.top_word_share]
    quantities += [interventions.permutation_effect(), interventions.substituted()]
    quantities += [interventions.adversary(0.01, "exact"), interventions.largest_jsd()]
    quantities += [interventions.single_erasure({"attention": rankings["attention"]})]
    quantities += [interventions.until_flip(rankings, orders=1), interventions.without_reason(rationales)]
    pairs = [("attention", "gradient_times_input"), ("attention", OF_HIDDEN)]
    frames = [measure_all(models, quantities).assign(kind=kind) for kind, models in by_kind(trained).items()]
    instances = add_entropies(correlate(pd.concat(frames, ignore_index=True), pairs), ["attention"])
    return instances.assign(
        accuracy=(instances["label"] == instances["prediction"]).astype(float),
        permutation_moves=(instances["permutation"] > MOVED).astype(float),
        adversary_share=instances["adversary_exact_jsd"] / instances["largest_jsd"],
        flips_later=instances["removed_attention_fraction"] - instances["removed_gradient_fraction"],
        attention_on_rationale=attention_on_rationale(instances, rationales),
    )


def who_counts(instances: pd.DataFrame) -> pd.DataFrame:
    """Each model of `tested` with its accuracy, mass on and need of the reason, and entropy, and whether it `counts`.

    Its accuracy is at most SAME_ACCURACY below the mean of the honest models, and its need of the reason, how far the
    prediction moves without it, within SAME_NEED of theirs; a liar's mass on the reason is below LITTLE_MASS.
    """
    if instances.empty:
        return instances
    table = instances.groupby(["kind", "seed"], sort=False)[list(OF_MODELS)].mean().rename(columns=OF_MODELS)
    kind = table.index.get_level_values("kind")
    honest = table[kind.isin(HONEST)].mean()
    alike = table["accuracy"] >= honest["accuracy"] - SAME_ACCURACY
    alike &= (table["need of the reason"] - honest["need of the reason"]).abs() <= SAME_NEED
    return table.assign(counts=alike & (kind.isin(HONEST) | (table["mass on the reason"] < LITTLE_MASS)))


def suspicions(instances: pd.DataFrame, guided: Sequence[Trained]) -> pd.DataFrame:
    """How suspicious each of TESTS finds each model of `tested` that counts: a row for each (kind, seed).

    The mean over the texts, or what other attention (or an MLP guided by theirs) costs in F1, signed for a liar.
    """
    if instances.empty:
        return instances
    models = instances.groupby(["kind", "seed"], sort=False)
    table = models[[column for column, *_ in TESTS.values() if column in instances]].mean()
    statistic = score_statistic(DROPS)
    drops = [statistic(np.ones((1, len(texts))), answer_table(texts, DROPS))[0, :, 0] for _, texts in models]
    table = table.join(pd.DataFrame(drops, table.index, DROPS))
    f1 = {(kind_of(mlp.run.base), mlp.run.seed): evaluate(mlp.model, mlp.batches("test"))["f1"] for mlp in guided}
    f1 |= {("displayed", seed): value for (kind, seed), value in f1.items() if kind == "smuggler"}
    table = table.assign(guided=[f1.get(model, np.nan) for model in table.index])[who_counts(instances)["counts"]]
    return pd.DataFrame({test: sign * table[column] for test, (column, sign, _) in TESTS.items()})


# --- what its findings read


def tables(answers, measured, copies, suspicion, columns: Sequence[str]) -> dict[str, pd.DataFrame]:
    """What the findings read: a row for each explanation of models (measured; of real texts `people`) and copies.

    answers: every model on all texts, with attention_weights. suspicion: of `suspicions`.
    """
    planted = measured["dataset"].map(is_planted).astype(bool)
    parts = {"reasons": measured[planted], "people": measured[~planted]}
    parts = {name: by_explanation(rows, columns) for name, rows in (parts | {"copies": copies}).items()}
    return parts | {"answers": add_entropies(answers, ["attention"]), "suspicion": suspicion}


def by_explanation(instances: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A row for each text and explanation (`of`), with each of SCORES and what chance gives."""
    if instances.empty:
        return instances
    scores = [declare(score, "fraction") for score in SCORES if f"{score}_chance" in instances]
    kept = [*RUN_COLUMNS, "seed", "instance", "label", "prediction", "entropy_of_attention"]
    rows = add_entropies(instances, ["attention"])[kept + [f"{score}_chance" for score in scores]]
    own = {name: {score: instances[f"{score}_{name}"].astype(float) for score in scores} for name in columns}
    return pd.concat([rows.assign(of=title_of(name), **own[name]) for name in columns], ignore_index=True)


def detection(tables: Mapping[str, pd.DataFrame], pair: str) -> Iterator[tuple]:
    """G2: each test's AUROC for one of PAIRS, or for the liar that it finds worst."""
    found = detections(tables["suspicion"], PAIRS, LIARS)
    for row in found[found["pair"] == pair].to_dict("records"):
        number = min(row["liars"], row["honest"])
        effect = Effect("auroc", row["auroc"], dict.fromkeys(range(number), row["auroc"]), row["se"], number)
        model = {"model": row["test"], "of": row["test"], "dataset": tables["answers"]["dataset"].iloc[0]}
        yield model, [pd.DataFrame()], effect


PARTS = (models, variants, dials, kinds, guided, shortcuts, clean)
PAPER = Paper("ground_truth", "ours2026", GroundTruthSettings, PARTS)
