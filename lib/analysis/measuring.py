"""Measure a model on texts: one row per instance, one column per quantity."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import inf

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch, collate, micro_batches
from lib.metrics.distances import probabilities
from lib.models.evaluation import WORDS, eval_mode, words_at_once
from lib.models.interface import ModelOutput
from lib.progress import Progress
from lib.quantity import RUN_COLUMNS, Quantity, title_of
from lib.training import Trained

RUN = (*RUN_COLUMNS, "seed")
BATCH = 512  # texts: the searches and sweeps are fastest on many at once
LOGITS = 2**14  # texts x classes: of each there are values for each token, or draw
OWN_COLUMNS = (*RUN, "instance", "length", "label", "prediction", "probability", "left_out")
MOST_CLASSES = 6  # of which there is a text to be read
READABLE = 60  # tokens: the longest text that is chosen to be read, where there is a shorter one

# The model's own attention, (batch, token), and the largest weight of each text, (batch,).
attention_weights = Quantity("attention_weights", lambda model, batch, output: output.attention, "fraction")
max_attention = Quantity("max_attention", lambda model, batch, output: output.attention.amax(dim=-1), "fraction")


def measure(
    model: nn.Module, batches: Iterable[Batch], quantities: Sequence[Quantity], run=None, progress=None
) -> pd.DataFrame:
    """One row per instance, in the order of the split, whatever the batches were.

    A quantity's values (batch,) are a column of floats, (batch, token) a column of NumPy arrays that hold the text's
    own tokens only, (batch, draw) a column of arrays of that length; parts are columns <name>_<part>. The output is
    given without its graph; a quantity that needs gradients runs the model itself. A text longer than its `max_tokens`
    is left out of that quantity alone: NaN (None in a column of arrays), with the reason in `left_out`.

    Args:
        run: an object with the attributes dataset, encoder, attention, projection, variant, layers and seed.
        progress: a lib.progress.Progress, advanced once when all batches are done; until then notes say how far it is.
    Returns:
        the run's columns (empty without a run), instance, length (tokens), label, prediction, probability (of class 1;
        of the predicted class where there are more than two), left_out, and a column per quantity.
    Raises:
        ValueError: the model's logits are not finite, a quantity's name is taken, or its shape is wrong.
    """
    taken = Counter([*OWN_COLUMNS, *(quantity.name for quantity in quantities)]).most_common(1)[0]
    if taken[1] > 1:
        raise ValueError(f"two columns would be called {taken[0]!r}; the model's own attention is 'attention_weights'")
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    rows, columns = [], {quantity.name: [] for quantity in quantities}  # those that a quantity has
    with eval_mode(model):
        for batch in micro_batches(batches, words_at_once(model, WORDS)):
            rows += measure_batch(model, batch.to(device), quantities, columns)
            if progress is not None:
                progress.note(f"{run}: {len(rows):,} texts")
    if progress is not None:
        progress.advance(str(run or ""))
    columns = {quantity.name: columns[quantity.name] or quantity.columns for quantity in quantities}
    for row in rows:
        row["left_out"] = tuple((column, why) for name, why in row["left_out"] for column in columns[name])
    names = [column for of_quantity in columns.values() for column in of_quantity]
    rows.sort(key=lambda row: row["instance"])
    frame = pd.DataFrame(rows, columns=[*OWN_COLUMNS[len(RUN) :], *names])
    for name in names:
        if frame[name].map(lambda value: isinstance(value, np.ndarray)).any():  # a text without an array: None, not NaN
            frame[name] = frame[name].where(frame[name].notna(), None)
        else:
            frame[name] = frame[name].astype(np.float64)
    identity = {name: getattr(run, name, "") for name in RUN}
    return pd.concat([pd.DataFrame(identity, index=frame.index), frame], axis=1).copy()  # of columns that lie together


def measure_all(trained: Sequence, quantities: Sequence[Quantity]) -> pd.DataFrame:
    """`measure` of the test texts of several trained runs (lib.training.Trained), one below the other."""
    with Progress(f"measuring {', '.join(one.name for one in quantities)}", total=len(trained)) as progress:
        frames = [measure(own.model, batches_of(own), quantities, own.run, progress) for own in trained]
    return pd.concat(frames or [measure(nn.Identity(), (), quantities)], ignore_index=True)


def batches_of(trained: Trained) -> Iterator[Batch]:
    """The test texts in batches to measure, smaller ones of many classes."""
    return trained.batches("test", min(BATCH, 1 + LOGITS // len(trained.corpus.classes)))


def measure_batch(model: nn.Module, batch: Batch, quantities: Sequence[Quantity], columns: dict) -> list[dict]:
    """The rows of one batch; adds to `columns` which columns each quantity gave."""
    output, lengths = forward(model, batch), batch.mask.sum(dim=1)
    distribution = probabilities(output.logits.double())
    top, prediction = distribution.max(dim=1)
    probability = distribution[:, 1] if distribution.shape[1] == 2 else top
    own = {"instance": batch.instance, "length": lengths, "label": batch.label, "prediction": prediction}
    values = zip(*(value.tolist() for value in (*own.values(), probability)), strict=True)
    rows = [dict(zip((*own, "probability"), row, strict=True), left_out=()) for row in values]
    parts = {None: (batch, output)}  # max_tokens -> the batch without longer texts, and the output of these
    for quantity in quantities:
        bound = quantity.max_tokens
        short = lengths <= (inf if bound is None else bound)
        for place in (~short).nonzero().flatten().tolist():
            rows[place]["left_out"] += ((quantity.name, f"longer than {bound:,} tokens"),)
        if not short.any():
            continue
        if bound not in parts:
            rest = batch if short.all() else batch.rows(short)
            parts[bound] = rest, output if rest is batch else forward(model, rest)
        measured = named_values(quantity.name, quantity(model, *parts[bound]), quantity, *parts[bound])
        columns[quantity.name] += [column for column in measured if column not in columns[quantity.name]]
        for column, of_texts in measured.items():
            for place, value in zip(short.nonzero().flatten().tolist(), of_texts, strict=True):
                rows[place][column] = value
    return rows


def forward(model: nn.Module, batch: Batch) -> ModelOutput:
    """The model's output without its graph; a ValueError where its logits are not finite."""
    with torch.no_grad():
        output = model(batch)
    broken = ~torch.isfinite(output.logits).all(dim=1)
    if broken.any():
        texts = f"{int(broken.sum())} of {len(batch)} texts of a batch, first for instance {batch.instance[broken][0]}"
        raise ValueError(f"the model's logits are not finite for {texts}. Its training has diverged")
    return output


def output_of_text(trained: Trained, position: int) -> ModelOutput:
    """What a model computes of one text of test, by its place in the split."""
    batch = collate(trained.corpus.test, np.array([position])).to(trained.run.device_kind)
    with eval_mode(trained.model):
        return forward(trained.model, batch)


def named_values(
    name: str, value: Tensor | dict, quantity: Quantity, batch: Batch, output: ModelOutput
) -> dict[str, list]:
    """Column -> one value a text: a float, or an array of the values of its own tokens, or of the draws."""
    if isinstance(value, dict):
        parts = [named_values(f"{name}_{key}", part, quantity, batch, output) for key, part in value.items()]
        return {column: values for part in parts for column, values in part.items()}
    quantity.declare(name)
    value = value.detach().cpu()
    if value.shape == (len(batch),):
        return {name: value.double().tolist()}
    if value.shape == (len(batch), quantity.draws):
        return {name: list(value.numpy())}
    mask = next((mask.cpu() for mask in (output.mask, batch.mask) if mask.shape == value.shape), None)
    if mask is None:
        allowed = f"allowed here: ({len(batch)},) or (batch, token) {tuple(output.mask.shape)}"
        raise ValueError(f"quantity {name!r} has shape {tuple(value.shape)}; {allowed}")
    return {name: [row[real].numpy() for row, real in zip(value, mask, strict=True)]}


def left_out(instances: pd.DataFrame) -> pd.DataFrame:
    """What a table of instances does not hold: quantity, texts left out (in each run), of how many, why.

    One row per quantity and reason: texts beyond a quantity's bound, and texts for which it is undefined (NaN).
    """
    skipped = Counter(pair for pairs in instances["left_out"] for pair in pairs)
    skipped |= {(name, "undefined"): int(undefined(instances, name).sum()) for name in quantity_columns(instances)}
    # the p-value of a tau is left out where that is
    own = {key: n for key, n in skipped.items() if not re.fullmatch(r"kendall_tau_.*_(p|significant)", key[0])}
    rows = [(name, n, len(instances), why) for (name, why), n in own.items()]
    return pd.DataFrame(rows, columns=["quantity", "texts left out", "of", "why"])


def quantity_columns(instances: pd.DataFrame) -> list[str]:
    """The columns with one number per instance that were measured."""
    numbers = instances.select_dtypes(["number", "bool"]).columns
    return [column for column in numbers if column not in OWN_COLUMNS]


def undefined(instances: pd.DataFrame, column: str) -> pd.Series:
    """(instance,) True where the quantity was computed and is NaN: not where the text was left out."""
    skipped = [any(column == name for name, _ in pairs) for pairs in instances["left_out"]]
    return instances[column].isna() & ~pd.Series(skipped, index=instances.index, dtype=bool)


def joined(instances: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    """The first table with the second's quantities, which replace those of the same name: a cell may run again.

    ValueError where the tables are not of the same runs and instances in the same order.
    """
    keys = [*RUN, "instance"]
    if not instances[keys].reset_index(drop=True).equals(more[keys].reset_index(drop=True)):
        raise ValueError("the two tables are not of the same runs and instances; measure the same runs and split again")
    left_out = [tuple(dict.fromkeys(a + b)) for a, b in zip(instances["left_out"], more["left_out"], strict=True)]
    added = more.set_axis(instances.index).drop(columns=[name for name in OWN_COLUMNS if name in more])
    kept = instances.drop(columns=added.columns, errors="ignore")
    return pd.concat([kept.assign(left_out=left_out), added], axis=1)


def examples(instances: pd.DataFrame, classes: Sequence[str], far: str | None = None) -> pd.DataFrame:
    """A few texts of the table's first run, chosen by a rule, which the column `why` names; of READABLE ones, if any.

    Of each class (at most MOST_CLASSES, the most frequent) the text that the model is surest of and right about, the
    text it is least sure of, and, where `far` names a column, the text in which that is largest.
    """
    first = instances.iloc[0][list(RUN)]
    run = instances[(instances[list(RUN)] == first).all(axis=1)]
    far = None if far is None or run[far].isna().all() else far
    run = run if far is None else run[run[far].notna()]
    short = run[run["length"] <= READABLE]
    run = short if len(short) else run
    sureness = (run["probability"] - 0.5).abs() if len(classes) == 2 else run["probability"]
    right = run["label"] == run["prediction"]
    chosen = {}
    for label in sorted(run["label"].value_counts().index[:MOST_CLASSES]):
        sure = sureness[right & (run["label"] == label)]
        if len(sure):
            chosen[f"The text that is most surely, and rightly, {classes[label]}"] = sure.idxmax()
    chosen["The text the model is least sure of"] = sureness.idxmin()
    if far is not None:
        chosen[f"The text with the largest {title_of(far)}"] = run[far].idxmax()
    return run.loc[list(chosen.values())].assign(why=list(chosen))
