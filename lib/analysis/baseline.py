"""How far words alone get, without attention: TF-IDF and logistic regression, measured as the models are."""

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import Pipeline, make_pipeline

from lib.analysis.measuring import RUN
from lib.analysis.statistics import estimate
from lib.analysis.summaries import DRAWS, answer_table, configurations, score_statistic, seeds_of
from lib.datasets.corpus import Corpus, Instance
from lib.quantity import unit_of

NAME = "TF-IDF + logistic regression"
STRENGTHS = (0.1, 1.0, 10.0, 100.0)


def baseline(corpus: Corpus) -> pd.DataFrame:
    """What a logistic regression over TF-IDF answers for each text of test: rows as `measure` gives them.

    Its C is the one of STRENGTHS that is most accurate on dev, of equals the least; then it is fitted on both.
    """
    texts, test = [*corpus.train.instances, *corpus.dev.instances], corpus.test
    held_out = PredefinedSplit(np.repeat([-1, 0], [len(corpus.train), len(corpus.dev)]))  # dev alone
    model = GridSearchCV(regression(), {"logisticregression__C": STRENGTHS}, cv=held_out)
    model.fit([words(text) for text in texts], [text.label for text in texts])
    probabilities = model.predict_proba([words(text) for text in test.instances])
    prediction = model.classes_[probabilities.argmax(axis=1)]
    rows = {"instance": range(len(test)), "length": test.lengths, "label": test.labels, "prediction": prediction}
    rows["probability"] = probabilities[:, 1] if len(corpus.classes) == 2 else probabilities.max(axis=1)
    identity = dict.fromkeys(RUN, "") | {"dataset": corpus.name, "encoder": NAME, "seed": 0}
    return pd.DataFrame(identity | rows).assign(left_out=[()] * len(test))


def words(instance: Instance) -> tuple[str, ...]:
    """The tokens of a text, then those of its question, which count apart from the text's."""
    return (*instance.tokens, *(f"? {token}" for token in instance.query or ()))


def regression() -> Pipeline:
    """Untrained: of unigrams and bigrams in at least 2 texts, weighted by 1 + ln(count) times idf, rows of length 1."""
    of_tokens = {"tokenizer": tuple, "lowercase": False, "token_pattern": None}
    counts = TfidfVectorizer(**of_tokens, ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    return make_pipeline(counts, LogisticRegression(max_iter=1000))


def against_baseline(instances: pd.DataFrame, answers: pd.DataFrame, score: str = "f1") -> pd.DataFrame:
    """Each configuration's score, f1 or accuracy, less that of `answers`, which are the baseline's, on the same texts.

    Returns RUN_COLUMNS, quantity, first (the model's value), second (the baseline's), difference, low, high, unit,
    n, seeds, se, of_seeds; ValueError: the two answer for other texts.
    """
    rows, of_words = [], answers[["label", "prediction"]].to_numpy(np.float64)[:, None]  # (instance, seed, answer)
    for key, group in configurations(instances):
        table = answer_table(group, [score])
        if not np.array_equal(table[:, 0, 0], answers["label"]):
            raise ValueError(f"{'/'.join(map(str, key.values()))} and the baseline were measured on other texts")
        effect = estimate([score], score_statistic([score]), [table, of_words], seeds_of(group), DRAWS)[0]
        low, high = effect.interval()
        row = {"quantity": score, "first": effect.first, "second": effect.second, "difference": effect.value}
        row |= {"low": low, "high": high, "unit": unit_of(score), "n": effect.n}
        rows.append(key | row | {"seeds": len(effect.by_run), "se": effect.se, "of_seeds": dict(effect.by_run)})
    return pd.DataFrame(rows)
