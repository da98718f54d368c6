"""What hidden states keep of their words: mutual information of embeddings and hidden states, word by word."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pandas as pd
import torch
from scipy.special import xlogy

from lib.analysis.measuring import BATCH, RUN
from lib.analysis.statistics import Effect, number_by_seed, t_interval
from lib.datasets.batches import micro_batches
from lib.datasets.corpus import SPECIALS, Split
from lib.metrics import mutual_information as measures
from lib.models.evaluation import WORDS, eval_mode, words_at_once
from lib.progress import Progress
from lib.quantity import RUN_COLUMNS
from lib.training import Trained

MOST = 1_000_000  # occurrences of the words of a sample
SAMPLES = ("most_frequent", "random_sample")
NAME = "mutual_information_"
PARTS = 50  # of the texts, each left out once
SEED = 0  # of the random sample of words, of occurrences beyond MOST, and of the clusters


def information(trained: Sequence[Trained], words: int) -> pd.DataFrame:
    """Mutual information of input and hidden state of each run, in nats: a row for each run and sample of words.

    Embeddings and hidden states of every occurrence of the words in train (Tutek & Snajder 2020, section 3.4), at most
    MOST, are clustered, each separately, into as many clusters as words; of the most frequent words, and random ones.

    Returns the run's columns, quantity, plug_in, null, above_null (plug_in less null), n, words, texts (that the words
    occur in), without (plug_in without each of PARTS of the texts, for a standard error over texts).
    """
    rows, known = [], {}
    with Progress("mutual information", total=len(trained)) as progress:
        for model in trained:
            train, run = model.corpus.train, {name: getattr(model.run, name) for name in RUN}
            counts = np.bincount(train.encoded[0], minlength=len(model.corpus.vocabulary))
            counts[: len(SPECIALS)] = 0
            chosen = measures.frequent_words(counts, words), measures.random_words(counts, words, SEED)
            for sample, of_sample in zip(SAMPLES, chosen, strict=True):
                *sides, texts = word_states(model, train, of_sample)
                keys = [blake2b(vectors).digest() for vectors in sides]  # frozen embeddings are clustered once
                for key, vectors in zip(keys, sides, strict=True):
                    known[key] = known[key] if key in known else measures.clusters(vectors, words, SEED)
                labels = [known[key] for key in keys]
                plug_in, null = measures.mutual_information(*labels, SEED)
                row = run | {"quantity": NAME + sample, "plug_in": plug_in, "null": null, "above_null": plug_in - null}
                row |= {"n": len(texts), "words": len(of_sample), "texts": len(np.unique(texts))}
                rows.append(row | {"without": without_parts(*labels, texts % PARTS)})
            progress.advance(str(model.run))
    return pd.DataFrame(rows)


def word_states(trained: Trained, split: Split, words: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings (row, embedding), hidden states (row, hidden) and texts (row,) of the words' occurrences.

    Where there are more than MOST, a random part of them.
    """
    ids, offsets = split.encoded
    where = np.flatnonzero(np.isin(ids, words))
    if len(where) > MOST:
        where = np.sort(np.random.default_rng(SEED).choice(where, MOST, replace=False))
    place = np.full(len(ids), -1, dtype=np.int64)
    place[where] = np.arange(len(where))
    place, starts = torch.from_numpy(place), torch.from_numpy(offsets)
    sides = None
    with eval_mode(trained.model), torch.no_grad():
        for batch in micro_batches(trained.batches(split.name, BATCH), words_at_once(trained.model, WORDS)):
            output, mask = trained.model(batch), batch.mask.cpu()
            if output.hidden.shape[:2] != mask.shape:
                raise ValueError("mutual information of words and states needs a model with a state for each word")
            position = torch.arange(mask.shape[1]).expand(mask.shape)
            rows = place[(starts[batch.instance.cpu()][:, None] + position)[mask]]
            parts = [side[batch.mask].cpu()[rows >= 0].numpy() for side in (output.embeddings, output.hidden)]
            sides = sides or [np.empty((len(where), part.shape[1]), part.dtype) for part in parts]
            for side, part in zip(sides, parts, strict=True):
                side[rows[rows >= 0].numpy()] = part
    return *sides, np.searchsorted(offsets, where, side="right") - 1


def without_parts(first: np.ndarray, second: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The plug-in mutual information (nats) of two labels (row,) without the rows of each part: (part,)."""
    wide = int(second.max()) + 1
    cells, place = np.unique(first.astype(np.int64) * wide + second, return_inverse=True)
    sides, whole = (cells // wide, cells % wide), np.bincount(place)
    found = []
    for number in range(int(part.max()) + 1):
        left = whole - np.bincount(place[part == number], minlength=len(cells))
        entropies = [xlogy(counts, counts).sum() for counts in (left, *(np.bincount(side, left) for side in sides))]
        rows = left.sum()
        found.append((entropies[0] - entropies[1] - entropies[2]) / rows + np.log(rows))
    return np.array(found)


def jackknife_error(without: np.ndarray) -> float:
    """The standard error of a statistic from its values without each part of the texts (part,) (Tukey 1958)."""
    return float(np.sqrt((len(without) - 1) * without.var()))


def summary(information: pd.DataFrame) -> pd.DataFrame:
    """Means of plug_in over the seeds with Student's 95% interval, in the columns of `summarise`."""
    keys, rows = [*RUN_COLUMNS, "quantity"], []
    for key, group in information.groupby(keys, sort=False):
        values = group["plug_in"]
        low, high = t_interval(values.to_numpy())
        row = {"value": values.mean(), "unit": "nats", "low": low, "high": high, "sd_seeds": values.std()}
        row |= {"n": group["n"].iloc[0], "seeds": len(group), "of_seeds": dict(zip(group["seed"], values, strict=True))}
        rows.append(dict(zip(keys, key, strict=True)) | row)
    return pd.DataFrame(rows)


def information_difference(measured: pd.DataFrame, quantity: str, between: tuple[str, str]) -> Effect:
    """The first variant's mutual information less the second's, in pairs of one seed.

    Of above_null, which does not grow with the number of clusters; se by the jackknife, the clusters as they are.
    """
    rows = measured[measured["quantity"] == quantity]
    pair = [rows[rows["variant"] == name].set_index("seed") for name in between]
    shared = pair[0].index.intersection(pair[1].index)
    pair = [side.loc[shared] for side in pair]
    apart = np.subtract(*(side["above_null"].to_numpy() for side in pair))
    se = jackknife_error(np.subtract(*(np.mean(side["without"].tolist(), axis=0) for side in pair)))
    by_run = number_by_seed(shared, apart)
    return Effect(quantity, float(apart.mean()), by_run, se, int(pair[0]["texts"].iloc[0]))
