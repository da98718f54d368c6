"""A value for each token: how spread the values are, and whether they lie on the words that decide the label."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from pandas.api.types import is_numeric_dtype
from scipy.special import xlogy
from torch import Tensor

from lib.analysis.statistics import ratio
from lib.datasets.batches import Batch
from lib.datasets.corpus import Instance
from lib.importance.leave_one_out import MAX_TOKENS, WORDS, fall_of_the_predicted, without_each, without_words
from lib.interventions import permuted_attention
from lib.models import HIERARCHICAL, AttentionModel, ModelOutput
from lib.models.evaluation import measurable, words_at_once
from lib.numerics import by_length
from lib.quantity import CHANGE_BOUNDS, Quantity, declare, title_of

SUPPORT = "attention_support"
Spans = Sequence[tuple[int, int]]
Rationales = Sequence[Spans | None]
SIGNED, RANDOM = "leave_one_out_signed", "random"
PREFIX = "rationale_average_precision_"


def token_values(instances: pd.DataFrame, name: str) -> list[np.ndarray | None]:
    """The arrays of a token-level column, None for a text without one; KeyError for another column."""
    values = instances[column_of(name)]
    if is_numeric_dtype(values) and values.notna().any():
        raise KeyError(f"the column {values.name!r} has no value per token")
    return [value if isinstance(value, np.ndarray) else None for value in values]


def column_of(name: str) -> str:
    """The column of a measure's values per token: "attention" is in "attention_weights"."""
    return "attention_weights" if name == "attention" else name


def inherited(left_out: pd.Series, columns: Iterable[str], followers: tuple[str, ...]) -> list[tuple]:
    """`left_out` of each row, with the columns that follow from others of which one was left out."""
    sides = set(columns)
    return [
        pairs + tuple((own, why) for side, why in pairs if side in sides for own in followers)[: len(followers)]
        for pairs in left_out
    ]


def with_entropies(instances: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """The instances with the normalised entropy of each token-level column, entropy_of_<name>, a fraction.

    Meister et al. (2021), section 4: H / ln n of the values, normalised to sum 1 over a text's own tokens: 1 where
    all tokens matter equally, 0 where one alone does. NaN for a text of one token and where all values are 0; a text
    that the measure left out is left out here.

    Raises:
        KeyError: no such column.
    """
    result = instances.copy()
    for name in names:
        entropy = declare(f"entropy_of_{name}", "fraction")
        result[entropy] = entropies_of(token_values(instances, name))
        result["left_out"] = inherited(result["left_out"], [column_of(name)], (entropy,))
    return result


def entropies_of(arrays: list[np.ndarray | None]) -> np.ndarray:
    """(instance,) H / ln n of each array (token,), at least 0, normalised to sum 1; NaN where that is undefined."""
    found = np.full(len(arrays), np.nan)
    for row, values in enumerate(arrays):
        if values is not None and len(values) > 1 and (total := values.sum(dtype=np.float64)) > 0:
            shares = values / total
            found[row] = -xlogy(shares, shares).sum() / np.log(len(values))
    return np.clip(found, 0, 1)


def with_support(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with the size of the attention's support: attention_support (tokens), ..._share (of the text's)."""
    sizes = np.array([np.count_nonzero(weights) for weights in instances["attention_weights"]], dtype=np.float64)
    shares = ratio(sizes, instances["length"].to_numpy(dtype=np.float64))
    of_text = declare(f"{SUPPORT}_share", "fraction", "tokens with weight, share of the text")
    return instances.assign(**{declare(SUPPORT, "tokens", "tokens with weight"): sizes, of_text: shares})


def with_violations(instances: pd.DataFrame, measures: Iterable[str]) -> pd.DataFrame:
    """The instances with violation_<measure>: is the measure's top token evidence against the prediction? 1 or 0.

    A violation of faithfulness (Liu et al. 2022): removing the token raises the predicted class's probability, its
    signed leave-one-out is below 0. Of several top tokens the share; violation_random is that of all tokens, what a
    token drawn at random has on average. NaN where the measure is undefined; a text that either left out is left out.

    Args:
        instances: with the column leave_one_out_signed. measures: columns with a value for each token.
    """
    result, effects = instances.copy(), token_values(instances, SIGNED)
    alike = [None if effect is None else np.zeros(len(effect)) for effect in effects]
    for name in (RANDOM, *measures):
        own = declare(f"violation_{name}", "fraction", f"faithfulness violation / {title_of(name)}")
        values = alike if name == RANDOM else token_values(instances, name)
        result[own] = [against(*pair) for pair in zip(values, effects, strict=True)]
        result["left_out"] = inherited(result["left_out"], [column_of(name), SIGNED], (own,))
    return result


def violation_by_chance(seed: int = 0, placed: int = 5) -> Quantity:
    """A quantity: how much less often the top token than a random one speaks against the prediction, by chance.

    The weights of each text are shuffled among its tokens and imposed, which gives a prediction. A token speaks against
    it where removing it, with the text encoded again and the other weights scaled to sum to 1, raises the predicted
    class's probability. 1 where the token drawn at random does and the one of the largest weight does not, -1 the other
    way round, else 0; the mean over `placed` orders, (batch,).
    """

    @torch.no_grad()
    def gap(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        orders = permuted_attention(output.attention, output.mask, 2 * placed, seed, batch.instance)
        weights = orders[:, :placed].repeat(1, 2, 1).flatten(0, 1)
        place = orders.argmax(dim=-1).flatten()  # the top token; and where another order has it, any token alike
        own = model.read_out(output, orders[:, :placed]).repeat(1, 2, 1).flatten(0, 1)
        text = torch.arange(len(batch), device=place.device).repeat_interleave(2 * placed)
        lengths, against = batch.lengths[text] * (output.mask.sum(dim=-1) > 1)[text], torch.zeros(len(text))
        for rows in by_length(lengths, words_at_once(model, WORDS)):
            part = batch.rows(text[rows])
            rest = without_each(weights[rows, : part.tokens.shape[1]], place[rows])
            rest = rest / rest.sum(dim=1, keepdim=True).clamp_min(torch.finfo(rest.dtype).tiny)
            with measurable(model):
                without = model(without_words(part, place[rows]), attention=rest).logits
            against[rows.cpu()] = (fall_of_the_predicted(own[rows], without[:, None])[:, 0] < 0).float().cpu()
        by_top, by_any = against.view(len(batch), 2, placed).mean(dim=-1).unbind(dim=1)
        return by_any - by_top

    title = "violation at random less by attention, by chance"
    return Quantity("violation_by_chance", gap, "fraction", CHANGE_BOUNDS, title, MAX_TOKENS)


def against(values: np.ndarray | None, effect: np.ndarray | None) -> float:
    """The share of the tokens with the largest value whose effect is below 0; NaN without values, or where one is."""
    if values is None or effect is None or np.isnan(values).any():
        return np.nan
    return float((effect[values == values.max()] < 0).mean())


def attention_on_rationale(rationales: Rationales) -> Quantity:
    """A quantity: how much of the attention lies on the tokens that decide the label, (batch,) fraction.

    Args:
        rationales: of every text of the split the spans [start, end) of those tokens; none: NaN.
    """

    def mass(model: torch.nn.Module, batch, output) -> Tensor:
        masses = output.attention.new_full((len(batch),), torch.nan)
        for row, position in enumerate(batch.instance.tolist()):
            weights = output.attention[row][output.mask[row]]
            marked = inside(rationales[position] or (), len(weights))
            if marked.any():
                masses[row] = weights[torch.from_numpy(marked)].sum()
        return masses

    return Quantity("attention_on_rationale", mass, "fraction")


def inside(spans: Spans, length: int) -> np.ndarray:
    """(token,) True on the tokens of the spans [start, end); ValueError where they go beyond the text."""
    marked = np.zeros(length, dtype=bool)
    last = max((end for _, end in spans), default=0)
    if last > length:
        raise ValueError(f"a span ends at {last}, the text has {length} tokens: are these another split's rationales?")
    for start, end in spans:
        marked[start:end] = True
    return marked


def on_rationale(instances: pd.DataFrame, measures: Mapping[str, str], rationales: Rationales) -> pd.DataFrame:
    """The rows with the area under precision and recall of each measure against the rationale, in columns of PREFIX.

    The area is average precision: 1 where every rationale token ranks above every other, `chance` what a random
    ranking has on average. A text without a rationale, or of rationale alone, has none (NaN).

    Args:
        instances: measured on one split. measures: name -> column with a value per token, such as attention_weights.
        rationales: the spans of every text of that very split. Train, dev and test may have been annotated otherwise:
            never hold one split against another.
    """
    marked = marked_tokens(instances, rationales)
    found = {"chance": [np.nan if spans is None else chance(int(spans.sum()), len(spans)) for spans in marked]}
    for name, column in measures.items():
        pairs = zip(marked, instances[column], strict=True)
        found[name] = [
            np.nan if spans is None or values is None else average_precision(spans, values) for spans, values in pairs
        ]
    names = {name: declare(PREFIX + name, "fraction", f"average precision of {title_of(name)}") for name in found}
    return instances.assign(**{names[name]: values for name, values in found.items()})


def average_precision(relevant: np.ndarray, values: np.ndarray) -> float:
    """The average precision of a ranking, in expectation over the orders of equal values.

    Without equal values it is scikit-learn's, which gives equal ones the precision of the last of them; a constant is
    then below a random order. Here a constant has exactly `chance`. A relevant token that is the j-th of m equal ones,
    r of them relevant, has j - 1 before it of which (j - 1)(r - 1)/(m - 1) are relevant on average.

    Args:
        relevant, values: (token,); at least one token is relevant, the largest value ranks first.
    Raises:
        ValueError: a value is NaN.
    """
    if np.isnan(values).any():
        raise ValueError("a value that is NaN has no rank")
    group = np.unique(-np.asarray(values, dtype=np.float64), return_inverse=True)[1]  # of equal values, best first
    equal, hits = np.bincount(group), np.bincount(group, relevant)
    above, hits_above = np.cumsum(equal) - equal, np.cumsum(hits) - hits
    slope = (hits - 1) / np.maximum(equal - 1, 1)
    rank, at = np.arange(1, len(group) + 1), np.sort(group)
    precision = (hits_above[at] + 1 + (rank - above[at] - 1) * slope[at]) / rank  # if that rank's token is relevant
    return float((hits[at] / equal[at] * precision).sum() / hits.sum())


def support_on_rationale(instances: pd.DataFrame, rationales: Rationales) -> pd.DataFrame:
    """The rows with the precision and recall of the attention's support, the tokens that have weight, as an answer.

    Columns rationale_support_precision (how many of the tokens with weight decide the label), ..._recall (how many of
    those that decide have weight) and ..._chance (the precision of the whole text, and of tokens drawn at random). NaN
    for a text without a rationale, or of rationale alone. Args as `on_rationale`.
    """
    titles = ("precision of the support", "recall of the support", "precision of the whole text")
    names = zip(("precision", "recall", "chance"), titles, strict=True)
    names = [declare(f"rationale_support_{name}", "fraction", title) for name, title in names]
    found = np.full((len(instances), len(names)), np.nan)
    pairs = zip(marked_tokens(instances, rationales), instances["attention_weights"], strict=True)
    for row, (decides, weights) in enumerate(pairs):
        if decides is not None:
            hits = np.count_nonzero(weights[decides])
            found[row] = hits / np.count_nonzero(weights), hits / decides.sum(), decides.mean()
    return instances.assign(**dict(zip(names, found.T, strict=True)))


def top_on_rationale(instances: pd.DataFrame, rankings: Iterable[str], texts: Sequence[Instance]) -> pd.DataFrame:
    """The rows with on_rationale_<ranking>: is its top item one that decides the label? 1 or 0; and ..._chance.

    Items are words, or sentences where attention is over sentences: one that holds a word that decides. NaN for a text
    of one item, without a rationale, or of which every item decides.

    Args:
        instances: with the columns of lib.interventions.single_erasure, measured under the name "top".
        texts: those that were measured.
    """
    rankings = list(rankings)
    found = {name: np.full(len(instances), np.nan) for name in (*rankings, "chance")}
    places = {name: instances[f"top_{name}_place"].to_numpy() for name in rankings}
    for row, (position, encoder) in enumerate(zip(instances["instance"], instances["encoder"], strict=True)):
        text = texts[position]
        sentences = text.sentences if encoder in HIERARCHICAL else ()
        decides = deciding(text.rationale, len(text.tokens), sentences)
        if decides is not None:
            found["chance"][row] = decides.mean()
            for name in rankings:
                found[name][row] = decides[int(places[name][row])]
    return instances.assign(**{declare(f"on_rationale_{name}", "fraction"): values for name, values in found.items()})


def deciding(spans: Spans | None, length: int, sentences: Sequence[int] = ()) -> np.ndarray | None:
    """(item,) True for those that decide: tokens, or sentences of so many tokens, those that hold one.

    None where there is no rationale, or where all items decide.
    """
    marked = inside(spans or (), length)
    if len(sentences):
        marked = np.logical_or.reduceat(marked, np.cumsum([0, *sentences[:-1]]))
    return marked if marked.any() and not marked.all() else None


def marked_tokens(instances: pd.DataFrame, rationales: Rationales) -> list[np.ndarray | None]:
    """`deciding` of the tokens of every row."""
    rows = zip(instances["instance"], instances["length"], strict=True)
    return [deciding(rationales[position], int(length)) for position, length in rows]


def chance(relevant: int, tokens: int) -> float:
    """The expected average precision of a random ranking of `tokens` of which `relevant` are relevant.

    The token at rank k is relevant with probability R / n, and precision there is then (1 + (k - 1)(R - 1)/(n - 1)) / k
    on average.
    """
    harmonic = float((1 / np.arange(1, tokens + 1)).sum())
    return (harmonic + (relevant - 1) / max(tokens - 1, 1) * (tokens - harmonic)) / tokens
