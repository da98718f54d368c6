"""A value for each token: how spread the values are, and whether the largest is evidence against the prediction."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import torch
from pandas.api.types import is_numeric_dtype
from scipy.special import xlogy
from torch import Tensor

from lib.datasets.batches import Batch
from lib.importance.deletions import MAX_WORDS_PER_PASS, without_each, without_words
from lib.importance.leave_one_out import MAX_TOKENS, fall_of_the_predicted
from lib.interventions import permuted_attention
from lib.models import AttentionModel, ModelOutput
from lib.models.evaluation import measurable, words_at_once
from lib.numerics import by_length
from lib.quantity import CHANGE_BOUNDS, Quantity, declare, title_of

SIGNED, RANDOM = "leave_one_out_signed", "random"


def token_values(instances: pd.DataFrame, name: str) -> list[np.ndarray | None]:
    """The arrays of a token-level column, None for a text without one; KeyError for another column."""
    values = instances[column_of(name)]
    if is_numeric_dtype(values) and values.notna().any():
        raise KeyError(f"the column {values.name!r} has no value per token")
    return [value if isinstance(value, np.ndarray) else None for value in values]


def column_of(name: str) -> str:
    """The column of a measure's values per token: "attention" is in "attention_weights"."""
    return "attention_weights" if name == "attention" else name


def pass_on(left_out: pd.Series, columns: Iterable[str], followers: tuple[str, ...]) -> list[tuple]:
    """`left_out` of each row, with the columns that follow from others of which one was left out."""
    sides, passed = set(columns), []
    for pairs in left_out:
        why = next((why for side, why in pairs if side in sides), None)
        passed.append(pairs if why is None else (*pairs, *((own, why) for own in followers)))
    return passed


def add_entropies(instances: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """The instances with the normalised entropy of each token-level column, entropy_of_<name>, a fraction.

    Meister et al. (2021), section 4: H / ln n of the values, normalised to sum 1: 1 where all tokens matter equally, 0
    where one alone does, NaN for one token and where all values are 0. What the measure left out is left out here.
    """
    result = instances.copy()
    for name in names:
        entropy = declare(f"entropy_of_{name}", "fraction")
        result[entropy] = np.clip([entropy_of(values) for values in token_values(instances, name)], 0, 1)
        result["left_out"] = pass_on(result["left_out"], [column_of(name)], (entropy,))
    return result


def entropy_of(values: np.ndarray | None) -> float:
    """H / ln n of values (token,), at least 0, normalised to sum 1; NaN where that is undefined."""
    if values is None or len(values) < 2 or not (total := values.sum(dtype=np.float64)) > 0:
        return np.nan
    return -xlogy(values / total, values / total).sum() / np.log(len(values))


def add_support(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with the size of the attention's support: attention_support (tokens), ..._share (of the text's).

    And tau_ceiling, the largest tau-b of attention with values of which no two are equal: sqrt(1 - ties / pairs); and
    tau_by_ties, on average that with values that are 0 where attention is, and above 0 in random order elsewhere.
    """
    sizes = instances["attention_weights"].map(np.count_nonzero).astype(float)
    alike = [np.unique(weights, return_counts=True)[1] for weights in instances["attention_weights"]]
    tied, pairs = [(of * (of - 1)).sum() for of in alike], instances["length"] * (instances["length"] - 1)
    size = declare("attention_support", "tokens", "tokens with weight")
    share = declare("attention_support_share", "fraction", "tokens with weight, share of the text")
    ceiling = declare("tau_ceiling", "tau-b", "largest tau that ties allow")
    by_ties = declare("tau_by_ties", "tau-b", "mean tau that ties alone make")
    zeros = instances["length"] - sizes
    columns = {size: sizes, share: sizes / instances["length"], ceiling: np.sqrt(1 - tied / pairs)}
    return instances.assign(**columns | {by_ties: zeros / (zeros + (sizes - 1) / 2)})


def add_violations(instances: pd.DataFrame, measures: Iterable[str]) -> pd.DataFrame:
    """The instances with violation_<measure>: is the measure's top token evidence against the prediction? 1 or 0.

    A violation of faithfulness (Liu et al. 2022): removing the token raises the predicted class's probability, its
    leave_one_out_signed is below 0. Of several top tokens the share; violation_random is that of all tokens. NaN where
    the measure, a column with a value for each token, is undefined; a text that either left out is left out.
    """
    result, effects = instances.copy(), token_values(instances, SIGNED)
    alike = [None if effect is None else np.zeros(len(effect)) for effect in effects]
    for name in (RANDOM, *measures):
        own = declare(f"violation_{name}", "fraction", f"faithfulness violation / {title_of(name)}")
        values = alike if name == RANDOM else token_values(instances, name)
        result[own] = [share_against(*pair) for pair in zip(values, effects, strict=True)]
        result["left_out"] = pass_on(result["left_out"], [column_of(name), SIGNED], (own,))
    return result


def violation_by_chance(seed: int = 0, placed: int = 5) -> Quantity:
    """A quantity: how much less often the top token than a random one speaks against the prediction, by chance.

    The weights of each text are shuffled among its tokens and imposed, which gives a prediction. A token speaks against
    it where removing it, with the text encoded again and the other weights scaled to sum to 1 (or equal, where all of
    these are 0), raises the predicted class's probability. (batch,): the share of `placed` orders in which a random
    token does, less that of the top one.
    """

    @torch.no_grad()
    def gap(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        orders = permuted_attention(output.attention, output.mask, 2 * placed, seed, batch.instance)
        weights = orders[:, :placed].repeat(1, 2, 1).flatten(0, 1)
        place = orders.argmax(dim=-1).flatten()  # the top token; and where another order has it, any token alike
        own = model.read_out(output, orders[:, :placed]).repeat(1, 2, 1).flatten(0, 1)
        text = torch.arange(len(batch), device=place.device).repeat_interleave(2 * placed)
        lengths, against = batch.lengths[text] * (output.mask.sum(dim=-1) > 1)[text], torch.zeros(len(text))
        for rows in by_length(lengths, words_at_once(model, MAX_WORDS_PER_PASS)):
            part = batch.rows(text[rows])
            rest = without_each(weights[rows, : part.tokens.shape[1]], place[rows])
            other = without_words(part, place[rows])
            rest = torch.where(rest.sum(dim=1, keepdim=True) > 0, rest, other.mask.to(rest))
            rest = rest / rest.sum(dim=1, keepdim=True).clamp_min(torch.finfo(rest.dtype).tiny)
            with measurable(model):
                without = model(other, attention=rest).logits
            against[rows.cpu()] = (fall_of_the_predicted(own[rows], without[:, None])[:, 0] < 0).float().cpu()
        by_top, by_any = against.view(len(batch), 2, placed).mean(dim=-1).unbind(dim=1)
        return by_any - by_top

    title = "violation at random less by attention, by chance"
    return Quantity("violation_by_chance", gap, "fraction", CHANGE_BOUNDS, title, MAX_TOKENS)


def share_against(values: np.ndarray | None, effect: np.ndarray | None) -> float:
    """The share of the tokens with the largest value whose effect is below 0; NaN without values, or where one is."""
    if values is None or effect is None or np.isnan(values).any():
        return np.nan
    return float((effect[values == values.max()] < 0).mean())
