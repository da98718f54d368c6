"""How far words alone get, without attention: TF-IDF and logistic regression, measured as the models are."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from lib.analysis.measuring import RUN
from lib.analysis.statistics import compare
from lib.analysis.summaries import (
    DRAWS,
    configurations,
    difference_row,
    refuse_unknown,
    score_statistic,
    seeds_of,
    stack_columns,
)
from lib.datasets.assembly import subset
from lib.datasets.corpus import Corpus, Instance
from lib.quantity import title_of

NAME = "TF-IDF + logistic regression"
SAME_PROBABILITY = 1e-6  # probabilities that differ by less over all texts are one answer
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
MOST_TOKENS_TRIED = 1_000_000  # tokens of train on which each of them is tried
MOST_TOKENS = 10_000_000  # of train that it reads: the pairs of words of many more would not fit into memory


def baseline(corpus: Corpus) -> pd.DataFrame:
    """What a logistic regression over TF-IDF answers for each text of test: rows as `measure` gives them.

    It reads train and dev, by the corpus' own tokens, those of a question apart: unigrams and bigrams of at least 2
    of its texts, weighted by 1 + ln(count) times idf, rows of length 1. Its regularization is chosen on dev
    (`choose_strength`). Of a train split beyond MOST_TOKENS it reads a part, the classes in their shares, and prints
    that.
    """
    texts = subset(corpus.train.instances, MOST_TOKENS)
    if len(texts) < len(corpus.train):
        print(f"{NAME}: it reads {len(texts):,} of {len(corpus.train):,} texts of train")
    chosen, test = choose_strength(texts, corpus.dev.instances), corpus.test
    model = fit([*texts, *corpus.dev.instances], chosen)
    probabilities = model.predict_proba([words(text) for text in test.instances])
    prediction = model.classes_[probabilities.argmax(axis=1)]
    rows = {"instance": range(len(test)), "length": test.lengths, "label": test.labels, "prediction": prediction}
    rows["probability"] = probabilities[:, 1] if len(corpus.classes) == 2 else probabilities.max(axis=1)
    identity = dict.fromkeys(RUN, "") | {"dataset": corpus.name, "encoder": NAME, "seed": 0}
    return pd.DataFrame(identity | rows).assign(left_out=[()] * len(test))


def choose_strength(train: Sequence[Instance], dev: Sequence[Instance]) -> float:
    """The C of STRENGTHS that, fitted on train, is most accurate on dev; of equal ones the least.

    Of a train split beyond MOST_TOKENS_TRIED a part is fitted.
    """
    part, labels = subset(train, MOST_TOKENS_TRIED), [text.label for text in dev]
    scores = {c: fit(part, c).score([words(text) for text in dev], labels) for c in STRENGTHS}
    return max(scores, key=scores.get)


def fit(texts: Sequence[Instance], c: float) -> Pipeline:
    """`regression`, fitted on these texts."""
    return regression(texts, c).fit([words(text) for text in texts], [text.label for text in texts])


def words(instance: Instance) -> tuple[str, ...]:
    """The tokens of a text, then those of its question, which count apart from the text's."""
    return (*instance.tokens, *(f"? {token}" for token in instance.query or ()))


def regression(texts: Sequence[Instance], c: float = 1.0) -> Pipeline:
    """The untrained model, of scikit-learn's regularization C: of tuples of tokens to probabilities of the classes."""
    counts = TfidfVectorizer(
        analyzer="word",
        tokenizer=tuple,  # the texts are in tokens already
        lowercase=False,
        token_pattern=None,
        ngram_range=(1, 2),
        min_df=2 if share_words(texts) else 1,  # scikit-learn refuses to be left without any
        sublinear_tf=True,
    )
    return make_pipeline(counts, LogisticRegression(C=c, max_iter=1000))


def share_words(texts: Sequence[Instance]) -> bool:
    """Whether two of the texts share a token."""
    seen = set()
    for text in texts:
        if not seen.isdisjoint(words(text)):
            return True
        seen.update(words(text))
    return False


def against_baseline(instances: pd.DataFrame, answers: pd.DataFrame, score: str = "f1") -> pd.DataFrame:
    """Each configuration's score less the baseline's on the same texts: a `difference_row` each.

    Args:
        answers: what `baseline` gives. score: f1 or accuracy.
    Returns:
        RUN_COLUMNS, then the columns of `difference_row`: first is the model, second the baseline.
    Raises:
        KeyError: another score. ValueError: the two answer for other texts.
    """
    refuse_unknown([score], ("f1", "accuracy"), "score")
    columns = ["label", "prediction", "probability"]
    words = answers[columns].to_numpy(dtype=np.float64)[:, None]  # (instance, seed, column)
    rows = []
    for key, group in configurations(instances):
        table = stack_columns(group, columns)
        if not np.array_equal(table[:, 0, 0], answers["label"]):
            raise ValueError(
                f"{'/'.join(map(str, key.values()))} and the baseline were measured on other texts; the comparison is "
                "paired by text"
            )
        effect = compare([score], score_statistic([score]), (table, words), seeds_of(group), DRAWS)[0]
        rows.append(key | difference_row(effect))
    return pd.DataFrame(rows)


def same_answers(instances: pd.DataFrame) -> list[str]:
    """A sentence for each model, single seeds apart, that gives all texts the same answer and probability."""
    sentences = []
    for (encoder, attention, seed), rows in instances.groupby(["encoder", "attention", "seed"], sort=False):
        if rows["prediction"].nunique() == 1 and np.ptp(rows["probability"]) < SAME_PROBABILITY and len(rows) > 1:
            name = f"{title_of(encoder)} + {title_of(attention)}, seed {seed},"
            answer = f"gives all {len(rows):,} texts the same answer (probability {rows['probability'].mean():.3f})"
            sentences.append(f"{name} {answer}: measures of what changes its prediction have nothing to compare.")
    return sentences
