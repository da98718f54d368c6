"""What the claims of Serrano & Smith (2019) are judged by."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import nan

import pandas as pd

from lib.analysis import excluded_by, flips_sooner, mean_effect, with_effects, with_entropies, witness_of
from lib.analysis.erasure import NEAR_ZERO
from lib.models import HIERARCHICAL
from lib.quantity import CHANGE_BOUNDS, declare, title_of, unit_of
from papers import published
from papers.claims import WEAK, Claim, uniform_attention
from papers.erasure_claims import CLAIMS, KEY, MANY_CLASSES, SHIFT
from papers.published import printed_effect

FEWEST_SENTENCES = 4  # of a text that counts for a model over sentences: of fewer any order is nearly the best
FEWEST_TEXTS = 50  # that a model is judged by
OF_A_KIND = 20  # texts of each run, such as those in which another item matters more
MADE_UP = "planted"  # how the names of made-up texts begin

Scope = Callable[[str], bool]


def any_model(encoder: str) -> bool:
    """A claim about all models."""
    return True


def encoded(encoder: str) -> bool:
    """Whether states know of other words; the encoder of one's own model does."""
    return not encoder.endswith("noenc")


def over_words(encoder: str) -> bool:
    """Whether it is a FLAN with an encoder."""
    return encoder.startswith("flan") and encoded(encoder)


def over_sentences(encoder: str) -> bool:
    """Whether it is a HAN."""
    return encoder in HIERARCHICAL


# Claims about the mean of a column over a model's texts: (column, those of its two sides, scope).
MEANS: dict[str, tuple[str, str, str, Scope]] = {
    "the top item matters most": ("top_gap_js", "top_attention_js", "top_attention_others_js", any_model),
    "a far larger weight often matters little more": ("near_zero_at_large", "", "", any_model),
    "the top item decides more often": ("top_gap_flip", "top_attention_flip", "top_attention_others_flip", any_model),
    "erasing it flips few decisions": ("top_attention_flip", "", "some_item_flips", over_sentences),
    "attention flips sooner than a random order": ("sooner_attention_than_random", "", "", any_model),
    "gradients flip sooner": ("sooner_gradient_than_attention", "gradient_first", "attention_first", encoded),
    "products flip sooner": ("sooner_product_than_attention", "product_first", "after_product", any_model),
    "attention does not find the fewest": ("missed_by_attention", "", "", any_model),
    "decisions flip late": ("removed_product_fraction", "", "removed_fewest_fraction", over_words),
    "the product's top item decides more often": (
        *("top_product_gain", "top_product_flip", "top_attention_flip"),
        any_model,
    ),
}
# Claims about what exceeds chance: the column that is measured of the model's own weights, and of shuffled ones.
BEYOND = {
    "the top item matters most, beyond chance": "top_gap_js",
    "the top item decides more often, beyond chance": "top_gap_flip",
    "attention flips sooner than a random order, beyond chance": "sooner_attention_than_random",
}
# Claims about most runs of a model: (claim, column, above which its mean counts, scope, in which way, by the paper's
# own count of models).
MOST = [
    ("gradients flip most texts sooner", "gradient_first", 0.5, encoded, "", 10 / 16),
    ("the gradient's top item decides less often", "top_gradient_loss", 0.0, any_model, "", 14 / 24),
    ("other orders erase a quarter less attention", "mass_less_gradient", SHIFT, any_model, ", gradient", nan),
    (
        "other orders erase a quarter less attention",
        "mass_less_product",
        SHIFT,
        any_model,
        ", gradient × attention",
        nan,
    ),
]


def evidence(measured: pd.DataFrame, by_chance: pd.DataFrame, known: pd.DataFrame, way: str = "paper") -> pd.DataFrame:
    """What each claim is judged by: rows of papers.claims.EVIDENCE.

    Models over sentences are judged by texts of FEWEST_SENTENCES or more.

    Args:
        measured: every model with the columns of lib.interventions.single_erasure as "top", of until_flip as "removed",
            and attention_weights. by_chance: the same rows with "top" and "removed" of `placed_by_chance`.
        known: what lib.analysis.witnesses gives. way: how the other item of figures 3 and 4 was drawn.
    """
    judged, shuffled = (with_effects(of_long_texts(one), way) for one in (measured, by_chance))
    about = {encoder: standing(rows, known) for encoder, rows in judged.groupby("encoder", sort=False)}
    parts = [*of_means(judged, about), *of_ties(judged, about), *of_ratios(judged, about), *of_most(judged, about)]
    parts = [*parts, *of_context(judged, about), *beyond_chance(judged, shuffled, about)]
    place = {short: number for number, short in enumerate(CLAIMS)}
    return pd.concat(parts, ignore_index=True).sort_values("short", key=lambda of: of.map(place), kind="stable")


def of_long_texts(measured: pd.DataFrame) -> pd.DataFrame:
    """The rows without what was measured of texts of fewer than FEWEST_SENTENCES where sentences are erased."""
    short = measured["encoder"].isin(list(HIERARCHICAL)) & (measured["removed_items"] < FEWEST_SENTENCES)
    columns = [name for name in measured if name.startswith(("top_", "removed_"))]
    judged = measured.copy()
    judged.loc[short, columns] = nan
    return judged


def standing(rows: pd.DataFrame, known: pd.DataFrame) -> dict[str, str]:
    """`witness` and `excluded` of a model: what it learned, its texts, and whether its attention has an order."""
    texts, over = rows.loc[rows["removed_items"] > 1, "instance"].nunique(), rows["encoder"].iloc[0] in HIERARCHICAL
    least = f"{FEWEST_SENTENCES} sentences" if over else "2 items"
    few = f"{texts} texts of at least {least}; {FEWEST_TEXTS} are needed" if texts < FEWEST_TEXTS else ""
    equal = uniform_attention(with_entropies(rows, ["attention"]))
    return witness_of(known, rows, reasons=(few, equal))


def of_means(judged: pd.DataFrame, about: dict) -> Iterator[pd.DataFrame]:
    """Of each model the claims MEANS, and the one about models without an encoder."""
    several = judged[["label", "prediction"]].max().max() > 1  # more than two classes
    for encoder, rows in judged.groupby("encoder", sort=False):
        for short, (column, first, second, scope) in MEANS.items():
            within = scope(encoder) and (several or CLAIMS[short].scope != MANY_CLASSES)
            within &= short != "decisions flip late" or not rows["dataset"].iloc[0].startswith(MADE_UP)
            yield of_column(short, encoder, rows, (column, first, second), within, about[encoder])
        if not encoded(encoder):
            columns = ("sooner_attention_than_gradient", "attention_first", "gradient_first")
            yield of_column("without an encoder attention is on par", encoder, rows, columns, True, about[encoder])


def beyond_chance(judged: pd.DataFrame, shuffled: pd.DataFrame, about: dict) -> Iterator[pd.DataFrame]:
    """Of each model the claims BEYOND: its own weights less shuffled ones, in each text."""
    keys, columns = ["encoder", "seed", "instance"], list(BEYOND.values())
    both = judged.merge(shuffled[[*keys, *columns]], on=keys, suffixes=("", "_shuffled"))
    for short, column in BEYOND.items():
        name = declare(f"{column}_beyond_chance", unit_of(column), None, CHANGE_BOUNDS)
        gaps = both.assign(**{name: both[column] - both[f"{column}_shuffled"]})
        for encoder, rows in gaps.groupby("encoder", sort=False):
            yield of_column(short, encoder, rows, (name, column, f"{column}_shuffled"), True, about[encoder])


def of_column(
    short: str, encoder: str, rows: pd.DataFrame, columns: tuple[str, str, str], within: bool, standing: dict
) -> pd.DataFrame:
    """The evidence for a claim about the mean of a column, those of its two sides beside it."""
    column, *sides = columns
    there = rows[rows[column].notna()]
    first, second = (there.groupby("seed")[side].mean().to_dict() if side else nan for side in sides)
    excluded = standing["excluded"] or (unfit(short, there) if within else "")
    more = {"within": within, "printed": printed_of(short, rows), "note": note_of(short, there)}
    more |= standing | {"excluded": excluded, "first": first, "second": second}
    return CLAIMS[short].compared(title_of(encoder), mean_effect(rows, column), **more)


def unfit(short: str, there: pd.DataFrame) -> str:
    """Why the texts of a model say nothing about a claim; "" where they do."""
    texts = there.groupby("seed").size().min() if len(there) else 0
    if short == "a far larger weight often matters little more" and texts < OF_A_KIND:
        return f"{texts} texts of a run in which the top item leads by so much attention; {OF_A_KIND} are needed"
    if short.startswith("the top item matters most"):
        tops = [name for name in there if name.startswith("top_") and name.endswith("_js") and "others" not in name]
        if (most := there[tops].mean().max()) < (least := CLAIMS[short].bound):
            largest = f"no ranking's top item changes the output by more than {most:.4f} nats on average"
            return f"{largest}: none could matter by {least:g}"
    of_fewest = short in ("erasing it flips few decisions", "attention does not find the fewest")
    if of_fewest and not there["removed_fewest_count"].notna().any():
        return "the fewest are known of no text: the read-out is not affine, or nothing flips"
    if short == "a far larger weight often matters little more" and (some := there["some_item_matters"].mean()) < 0.5:
        return f"in only {some:.0%} of these texts does any ranking's top item change the output by {NEAR_ZERO:g} nats"
    return ""


def note_of(short: str, there: pd.DataFrame) -> str:
    """What else to know of a claim's texts."""
    if short == "erasing it flips few decisions":
        return f"another item {there['top_attention_others_flip'].mean():.3f}"
    if short == "attention does not find the fewest":
        product = there["removed_product_count"].le(there["removed_fewest_count"]).mean()
        return f"gradient × attention finds them for {product:.0%} of the texts that can be flipped"
    if short == "decisions flip late":
        share = there["removed_product_fraction"]
        return f"{share.eq(1).mean():.0%} flip only when nothing is left; the others at {share[share < 1].mean():.3f}"
    return ""


def printed_of(short: str, rows: pd.DataFrame) -> float:
    """The paper's own effect where table 2 has the model."""
    dataset, where = str(rows["dataset"].iloc[0]), {"encoder": rows["encoder"].iloc[0]}
    cells = {
        "the top item decides more often": ("flip_random_only", -1),
        "erasing it flips few decisions": ("flip_both", 1),
    }
    if short not in cells:
        return nan
    table, (other, sign) = published.table(KEY, dataset), cells[short]
    return printed_effect(table, "flip_top_only", where) + sign * printed_effect(table, other, where)


def of_ties(judged: pd.DataFrame, about: dict) -> Iterator[pd.DataFrame]:
    """Figure 4: how far the top item leads in the texts where another matters more, and in all others."""
    claim = CLAIMS["where another item matters more, their weights are closer"]
    for encoder, rows in judged.groupby("encoder", sort=False):
        one, other = (mean_effect(rows, f"delta_alpha_{where}") for where in ("elsewhere", "where_negative"))
        values = {seed: value - other["of_seeds"].get(seed, nan) for seed, value in one["of_seeds"].items()}
        sides = {"first": one["difference"], "second": other["difference"]}
        se = (one["se"] ** 2 + other["se"] ** 2) ** 0.5  # of different texts
        texts = rows.groupby("seed")["delta_alpha_where_negative"].count().min()
        few = f"another item matters more in {texts} texts of a run; {OF_A_KIND} are needed"
        excluded = about[encoder]["excluded"] or (few if texts < OF_A_KIND else "")
        standing = about[encoder] | {"excluded": excluded}
        yield claim.evidence(title_of(encoder), values, **sides, se=se, n=int(other["n"]), **standing)


def of_ratios(judged: pd.DataFrame, about: dict) -> Iterator[pd.DataFrame]:
    """How many times as often the gradient is sooner, with the two counts of texts."""
    claim = CLAIMS["gradients flip sooner 1.6 times as often"]
    for row in flips_sooner(judged, "gradient", "attention").to_dict("records"):
        counts = " : ".join(f"{row[name]:.1f}".removesuffix(".0") for name in ("first_texts", "second_texts"))
        note = f"{counts} texts, {row['ratio']:.2f} times [{row['low']:.2f}, {row['high']:.2f}]"
        more = {"se": row["se"], "n": row["n"], "within": encoded(row["encoder"]), "note": note}
        yield claim.evidence(title_of(row["encoder"]), row["of_seeds"], **more, **about[row["encoder"]])


def of_most(judged: pd.DataFrame, about: dict) -> Iterator[pd.DataFrame]:
    """The claims MOST: whether each holds in each seed of a model. Each model by itself, since its seeds are alike."""
    for short, column, above, scope, label, printed in MOST:
        for encoder, rows in judged.groupby("encoder", sort=False):
            if scope(encoder):
                means = rows.groupby("seed")[column].mean().dropna()
                note = f"the mean is {means.mean():.3f}" if len(means) else ""
                model = f"{title_of(encoder)}{label}"
                yield CLAIMS[short].evidence(model, means.gt(above) * 1.0, printed=printed, note=note, **about[encoder])


def of_context(judged: pd.DataFrame, about: dict) -> Iterator[pd.DataFrame]:
    """How much more of a text must go where states reach further; over sentences as contrast."""
    there = set(judged["encoder"])
    for kind in ("flan", "han"):
        ranks = [name for name in (f"{kind}-rnn", f"{kind}-conv", f"{kind}-noenc") if name in there]
        for more, less in pairwise(ranks):
            for ranking, along in (("attention", "along attention"), ("fewest", "with the fewest items possible")):
                claim = CLAIMS[f"context delays flips ({along})"]
                yield paired(claim, judged, (more, less), f"removed_{ranking}_fraction", kind == "flan", about)


def paired(
    claim: Claim, judged: pd.DataFrame, models: tuple[str, str], column: str, within: bool, about: dict
) -> pd.DataFrame:
    """The evidence of the difference between two models, of the same texts and seeds."""
    one, other = (judged[judged["encoder"] == encoder] for encoder in models)
    pair = one.merge(other[["seed", "instance", column]], on=["seed", "instance"], suffixes=("", "_of_other"))
    name = declare("context_difference", "fraction", None, CHANGE_BOUNDS)
    pair[name] = pair[column] - pair[f"{column}_of_other"]
    both = pair[pair[name].notna()]
    means = both.groupby("seed")[[column, f"{column}_of_other"]].mean()
    sides = {"first": means[column].to_dict(), "second": means[f"{column}_of_other"].to_dict()}
    excluded = excluded_by(*(about[encoder]["excluded"] for encoder in models))
    known = [about[encoder]["witness"] for encoder in models]
    worst = WEAK if WEAK in known else known[0]
    more = sides | {"within": within, "witness": worst, "excluded": excluded}
    return claim.compared(" against ".join(map(title_of, models)), mean_effect(pair, name), **more)
