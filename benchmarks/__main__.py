"""python -m benchmarks: each fast form beside its definition, on texts of 20 to 2,000 tokens.

CPU seconds of one thread, on made-up texts and untrained models of the papers' sizes. It takes some minutes, and writes
benchmarks/results.md.
"""

import argparse
import platform
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import kendalltau

from benchmarks import transformer
from benchmarks.timing import WORDS, cpu_seconds, made_up
from lib.datasets.batches import Batch, collate
from lib.datasets.corpus import Vocabulary
from lib.importance.deletions import logits_without_each_token, logits_without_each_token_definition
from lib.importance.state_gradients import state_gradients, state_gradients_definition
from lib.interventions.adversary import adversarial_attention, exact_adversary_definition
from lib.interventions.searched_adversary import searched_adversary_definition
from lib.metrics import kendall_tau
from lib.models import AttentionClassifier, ModelOutput
from lib.random_streams import streams

RESULTS = Path(__file__).with_name("results.md")
LENGTHS = (20, 200, 500, 1000, 2000)  # tokens of a text
LONGEST = 200  # tokens up to which the definition is timed, and from which on the slope is fitted
TEXTS = 32  # in a batch, all of one length
Measure = Callable[[AttentionClassifier, Batch, ModelOutput], object]


class Work(NamedTuple):
    """A measure by its fast form and by its definition; `order`: how the fast form's cost should grow with n tokens."""

    name: str
    encoder: str
    order: str
    fast: Measure
    definition: Measure
    texts: int = TEXTS


def of_batch(function: Callable) -> Measure:
    return lambda model, batch, output: function(model, batch)


def of_output(function: Callable, *arguments) -> Measure:
    return lambda model, batch, output: function(model, output, *arguments)


def taus(model: AttentionClassifier, batch: Batch, output: ModelOutput) -> object:
    return kendall_tau(output.attention, output.hidden[:, :, 0], output.mask)


def taus_by_scipy(model: AttentionClassifier, batch: Batch, output: ModelOutput) -> object:
    rows = zip(output.attention, output.hidden[:, :, 0], output.mask, strict=True)
    return [kendalltau(attention[mask], hidden[mask]) for attention, hidden, mask in rows]


def search_by_its_definition(model: AttentionClassifier, batch: Batch, output: ModelOutput) -> object:
    return searched_adversary_definition(model, output, 0.01, streams(0, len(batch)))


LEFT_OUT = of_batch(logits_without_each_token), of_batch(logits_without_each_token_definition)
STATES = of_batch(state_gradients), of_batch(state_gradients_definition)
EXACT = of_output(adversarial_attention, 0.01), of_output(exact_adversary_definition, 0.01)
SEARCH = of_output(adversarial_attention, 0.01, "gradient"), search_by_its_definition
WORKS = (
    Work("leave-one-out", "bilstm", "n; n² until a deletion is forgotten", *LEFT_OUT, texts=4),
    Work("leave-one-out", "average", "n²", *LEFT_OUT),
    Work("leave-one-out", "conv", "n²", *LEFT_OUT),
    Work("gradients of all states", "bilstm", "n; n² until a gradient has faded", *STATES, texts=4),
    Work("adversary, exact", "bilstm", "n²", *EXACT),
    Work("adversary, 5 x 500 steps", "bilstm", "n", *SEARCH, texts=16),
    Work("Kendall's tau-b with p-value", "bilstm", "n²", taus, taus_by_scipy),
)
TEXT = """# How fast the fast forms are, and how their cost grows

Made by `make bench`: CPU seconds a text in one thread, by the fast form and by the definition, and how many times as
long the definition takes. A batch of made-up texts; untrained models of the papers' sizes with additive attention and
one output. What starts from hidden states and attention is timed without the forward pass. The slope is that of log
seconds over log tokens, from {longest} to {most:,} tokens: 1 where the cost of a text grows with its length, 2 where it
grows with the square. Kendall's tau-b is compared with SciPy's, a text at a time. {versions}.

{table}

Leave-one-out of an untrained BERT of MiniLM's size, each deletion a shortened text, beside a plain forward pass over as
many texts, both in tokens a CPU second, and captum's FeatureAblation, which masks each token in turn:

{transformer}
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help="only the rows whose name contains this; writes nothing")
    only = parser.parse_args(arguments).only
    torch.set_num_threads(1)
    rows = []
    for work in WORKS:
        if only.lower() in work.name.lower():
            rows.append(row_of(work))
            print("  ".join(f"{name}: {value}" for name, value in rows[-1].items()), flush=True)
    if not only:
        versions = f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}"
        tables = {"table": markdown(rows), "transformer": markdown(transformer.rows())}
        filled = TEXT.format(longest=LONGEST, most=LENGTHS[-1], versions=versions, **tables)
        RESULTS.write_text(filled, encoding="utf-8")


def markdown(rows: list[dict[str, str]]) -> str:
    """Rows as a table."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def row_of(work: Work, lengths: tuple[int, ...] = LENGTHS) -> dict[str, str]:
    """A row of the table."""
    ours = {tokens: seconds(work, work.fast, tokens) for tokens in lengths}
    theirs = {tokens: seconds(work, work.definition, tokens) for tokens in (lengths[0], LONGEST)}
    upper = [tokens for tokens in lengths if tokens >= LONGEST]
    slope = np.polyfit(np.log(upper), np.log([ours[tokens] for tokens in upper]), 1)[0]
    row = {"measure": work.name, "encoder": work.encoder, "texts": f"{work.texts}"}
    row |= {f"{tokens:,} tokens": f"{ours[tokens]:.2g}" for tokens in (*theirs, lengths[-1])}
    row |= {f"definition, {tokens}": f"{spent:.2g}" for tokens, spent in theirs.items()}
    row |= {f"times, {tokens}": f"{spent / ours[tokens]:.3g}" for tokens, spent in theirs.items()}
    return row | {"slope": f"{slope:.2f}", "expected": work.order}


def seconds(work: Work, measure: Measure, tokens: int) -> float:
    """CPU seconds a text."""
    split = made_up(work.texts, tokens, Vocabulary.of([WORDS]))
    model, batch = classifier(work.encoder), collate(split, np.arange(len(split)))
    with torch.no_grad():
        output = model(batch)
    return cpu_seconds(lambda: measure(model, batch, output)) / len(split)


def classifier(encoder: str) -> AttentionClassifier:
    """An untrained classifier whose weights are large enough that predictions and attention vary."""
    torch.manual_seed(0)
    model = AttentionClassifier(torch.randn(len(Vocabulary.of([WORDS])), 300), encoder, "additive")
    with torch.no_grad():
        model.decoder.weight.mul_(10)
        model.attention.context.weight.mul_(10)
    return model.eval()


if __name__ == "__main__":
    main()
