"""How far words alone get, without attention: TF-IDF and logistic regression, measured as the models are."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from lib.analysis.contrast import compared
from lib.analysis.measuring import RUN
from lib.analysis.statistics import bootstrap, mean_over
from lib.analysis.summarising import by_seed, configurations, scores
from lib.datasets.assembly import subset
from lib.datasets.corpus import Corpus, Instance

NAME = "TF-IDF + logistic regression"
MOST_TOKENS = 10_000_000  # of train that it reads: the pairs of words of many more would not fit into memory


def baseline(corpus: Corpus) -> pd.DataFrame:
    """What a logistic regression over TF-IDF answers for each text of test: rows as `measure` gives them.

    It reads train alone, by the corpus' own tokens, those of a question apart: single ones and pairs of neighbours that
    stand in at least 2 of its texts, 1 + ln(count) times idf, rows of length 1. scikit-learn's regression as it is,
    C = 1: nothing is chosen. Of a train beyond MOST_TOKENS it reads a part, the classes in their shares, and says so.
    """
    texts = subset(corpus.train.instances, MOST_TOKENS)
    if len(texts) < len(corpus.train):
        print(f"{NAME}: it reads {len(texts):,} of {len(corpus.train):,} texts of train")
    model = regression(texts).fit([words(one) for one in texts], [one.label for one in texts])
    test = corpus.test
    probabilities = model.predict_proba([words(one) for one in test.instances])
    prediction = model.classes_[probabilities.argmax(axis=1)]
    rows = {"instance": range(len(test)), "length": test.lengths, "label": test.labels, "prediction": prediction}
    rows["probability"] = probabilities[:, 1] if len(corpus.classes) == 2 else probabilities.max(axis=1)
    identity = dict.fromkeys(RUN, "") | {"dataset": corpus.name, "encoder": NAME, "seed": 0}
    return pd.DataFrame(identity | rows).assign(left_out=[()] * len(test))


def words(instance: Instance) -> tuple[str, ...]:
    """The tokens of a text, then those of its question, which count apart from the text's."""
    return (*instance.tokens, *(f"? {token}" for token in instance.query or ()))


def regression(texts: Sequence[Instance]) -> Pipeline:
    """The untrained model: of tuples of tokens to probabilities of the classes."""
    counts = TfidfVectorizer(
        analyzer="word",
        tokenizer=tuple,  # the texts are in tokens already
        lowercase=False,
        token_pattern=None,
        ngram_range=(1, 2),
        min_df=2 if share_words(texts) else 1,  # scikit-learn refuses to be left without any
        sublinear_tf=True,
    )
    return make_pipeline(counts, LogisticRegression(C=1.0, max_iter=1000))


def share_words(texts: Sequence[Instance]) -> bool:
    """Whether any token stands in two of the texts."""
    seen = set()
    for one in texts:
        if not seen.isdisjoint(words(one)):
            return True
        seen.update(words(one))
    return False


def against_baseline(
    instances: pd.DataFrame, answers: pd.DataFrame, score: str = "f1", draws: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Each configuration's score less the baseline's on the same texts, as `difference` has it, one row each.

    The mean over seeds; the bootstrap draws texts, the same for both, and the interval is over texts and seeds.

    Args:
        answers: what `baseline` gives. score: f1 or accuracy.
    Returns:
        RUN_COLUMNS, then quantity, first (the model), second (the baseline), difference, low, high (95%), word, unit,
        n, seeds.
    Raises:
        KeyError: another score. ValueError: the two answer for other texts.
    """
    if score not in ("f1", "accuracy"):
        raise KeyError(f"unknown score {score!r}; known: f1, accuracy")
    rows = []
    for key, group in configurations(instances):
        label, prediction = (by_seed(group, name).to_numpy() for name in ("label", "prediction"))
        if not np.array_equal(label[:, 0], answers["label"]):
            raise ValueError(
                f"{'/'.join(map(str, key.values()))} and the baseline were measured on other texts; the comparison is "
                "paired by text"
            )
        given = np.column_stack([prediction, answers["prediction"]])  # (instance, seed and baseline)
        labels = np.broadcast_to(label[:, :1], given.shape)
        classes = max(2, int(max(labels.max(), given.max())) + 1)
        of_all = scores(score, np.ones((1, len(label))), labels, given, classes)[0]
        by_draw = bootstrap(lambda w, y=labels, g=given, c=classes: scores(score, w, y, g, c), len(label), draws, seed)
        means = [float(mean_over(0, of_all[:-1])), float(of_all[-1])]
        differences = mean_over(1, by_draw[:, :-1]) - by_draw[:, -1]
        rows.append(key | compared(score, means, differences, [of_all[:-1], of_all[-1:]], len(label), True).to_dict())
    return pd.DataFrame(rows)
