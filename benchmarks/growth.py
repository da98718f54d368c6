"""python -m benchmarks.growth: how the cost of each work grows with the length and the number of texts.

CPU seconds in one thread and peak memory in a process of its own, on made-up texts; some minutes. Writes
benchmarks/growth.csv, growth.md and the chart growth.svg.
"""

import argparse
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported

import pandas as pd
import torch

from benchmarks import growing, growth_chart
from benchmarks.growing import UPPER_LENGTH, Work, made_up
from benchmarks.memory import highest
from benchmarks.slopes import Slope, compared
from lib.models import evaluation
from lib.models.transformer import MAX_TOKENS
from lib.training.fitting import WORDS

HERE = Path(__file__).resolve().parent
LENGTHS = (20, 50, 100, 200, 350, 500, 700, 1000, 1400, 2000)  # tokens
NUMBERS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)  # texts, of TOKENS tokens each
TOKENS = 8
UPPER = 3000  # texts from which on the slope along their number is fitted
WATCHED = (20, 200, 2000, 5000)  # tokens of the texts whose memory is watched
HELD = evaluation.WORDS  # of those texts, as many as `measure` takes at once
PAIRS = 2**23  # most pairs of their tokens where the cost is one of pairs; one text at least
TRAINED = 64  # texts of the watched training: two batches
TEXT = """# How the cost grows

Made by `python -m benchmarks.growth`, as the chart is; all points are in `growth.csv`. CPU seconds of one thread (the
least of two runs or more, of one where it takes above ten), made-up texts, untrained models of the papers'
sizes with additive attention; where the encoder is asked once for every pair of tokens (n²) they are small,
{small}. A slope is that of a line through the logarithms, ± its standard error;
promised is what the algorithm's cost gives at the same points.

Length: {texts} texts, as many at each length, of {lengths}; slope from {from_length} tokens on.
Number: {numbers}; slope from {from_number} texts on. {versions}.

![CPU seconds over the length and the number of texts](growth.svg)

| work | along | points | from (s) | to (s) | slope | promised | verdict | why |
|---|---|---|---|---|---|---|---|---|
{slopes}

## Memory

Megabytes beyond what the process held before, at its highest, each in a process of its own and through `measure`,
which hands on {held} words at once; in brackets the number of texts. Where the encoder is asked for every pair of
tokens they are fewer, for time. Training takes {trained} texts in batches of 32, as in the papers; a batch goes forth
and back in pieces of {pieces} words, a longer text by itself, for one step. g is a matrix of all pairs of a text's
tokens, some of which are held at once: 100 MB each at 5,000 tokens.

A Transformer under softmax holds no such matrix; what looks at its inner attention does, and leaves out texts of more
than {most:,} tokens. Under a sparse inner projection it holds several for every text of a piece: who wants that for
long texts should measure few at once. Leave-one-out of a Transformer encodes every shortened text anew, in pieces:
memory is bounded, and time is not.

| work | {watched} |
|---|{rule}
{memory}
"""
COLUMNS = ["work", "along", "tokens", "texts", "seconds", "megabytes"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--only", default="", help="the works whose name contains this; others stay as they are")
    parser.add_argument("--draw", action="store_true", help="measures nothing: table and chart of growth.csv again")
    parser.add_argument("--memory", nargs=3, metavar=("WORK", "TOKENS", "TEXTS"), help="prints the megabytes of one")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    works = growing.works()
    if chosen.memory:
        name, *sizes = chosen.memory
        print(megabytes(next(work for work in works if work.name == name), *map(int, sizes)))
        return
    names = [work.name for work in works]
    anew = [] if chosen.draw else [work for work in works if chosen.only.lower() in work.name.lower()]
    others = {*names} - {work.name for work in anew}
    points = [point for point in pd.read_csv(HERE / "growth.csv").to_dict("records") if point["work"] in others]
    points += [point for work in anew for point in measured(work)]
    points = pd.DataFrame(sorted(points, key=lambda point: names.index(point["work"])), columns=COLUMNS)
    if anew:
        points.to_csv(HERE / "growth.csv", index=False)
    (HERE / "growth.md").write_text(told(works, points), encoding="utf-8")
    growth_chart.drawn(points, works, UPPER).save(HERE / "growth.svg")
    spent = sum(os.times()[:4]) / 60  # of the processes that were started, too
    print(f"wrote {HERE / 'growth.md'} after {spent:.1f} CPU minutes", file=sys.stderr)


def measured(work: Work) -> list[dict]:
    """Its points along the length, along the number of texts, and of its memory."""
    work.seconds(made_up(2, 5))  # what is done once in a process is not counted
    points = []
    for along, sizes in (
        ("length", [(tokens, work.texts) for tokens in LENGTHS]),
        ("texts", [(TOKENS, number) for number in NUMBERS]),
    ):
        for tokens, number in sizes:
            seconds = best(work, tokens, number)
            points.append({"work": work.name, "along": along, "tokens": tokens, "texts": number, "seconds": seconds})
            print(points[-1], flush=True)
    for tokens in WATCHED:
        number = watched(work, tokens)
        found = watch(work, tokens, number)
        points.append({"work": work.name, "along": "memory", "tokens": tokens, "texts": number, "megabytes": found})
        print(points[-1], flush=True)
    return points


def best(work: Work, tokens: int, number: int) -> float:
    """The least CPU seconds of two runs or more; of one where it takes more than ten."""
    split, times = made_up(number, tokens), []
    while len(times) < 2 or (sum(times) < 1.5 and len(times) < 7):
        times.append(work.seconds(split))
        if times[0] > 10:
            break
    return float(f"{min(times):.4g}")


def watched(work: Work, tokens: int) -> int:
    """How many texts of so many tokens its memory is watched on: what the chunks hold, or as many as time allows."""
    if work.name == "train one epoch":
        return TRAINED
    most = PAIRS // (tokens + 2) ** 2 if work.pairs else HELD
    return max(1, min(HELD // (tokens + 2), most))


def watch(work: Work, tokens: int, number: int) -> float:
    """The megabytes that it takes beyond what it starts from, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.growth", "--memory", work.name, str(tokens), str(number)]
    done = subprocess.run(command, cwd=HERE.parent, check=True, capture_output=True, text=True)
    return float(done.stdout)


def megabytes(work: Work, tokens: int, number: int) -> float:
    """How much higher the process's memory stands at its highest, after a first small text, because of the work."""
    work.everything(made_up(2, 5))
    split, before = made_up(number, tokens), highest()
    work.everything(split)
    return round(highest() - before, 1)


def slope(work: Work, points: pd.DataFrame, along: str) -> Slope:
    """The slope of its upper points beside the promised one."""
    own = points[(points["work"] == work.name) & (points["along"] == along)]
    if along == "length":
        return compared(own["tokens"].tolist(), own["seconds"].tolist(), work.promise.cost, UPPER_LENGTH)
    return compared(own["texts"].tolist(), own["seconds"].tolist(), growing.LINEAR, UPPER)


def told(works: list[Work], points: pd.DataFrame) -> str:
    """growth.md."""
    numbers = sorted({work.texts for work in works})
    return TEXT.format(
        small="{embedding}-d vectors, {hidden} hidden units".format(**growing.SMALL),
        texts=f"{numbers[0]} to {numbers[-1]}",
        lengths=f"{LENGTHS[0]} to {LENGTHS[-1]:,} tokens",
        from_length=UPPER_LENGTH,
        numbers=f"{NUMBERS[0]} to {NUMBERS[-1]:,} texts of {TOKENS} tokens",
        from_number=f"{UPPER:,}",
        versions=f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}",
        slopes="\n".join(row(work, points, along) for along in ("length", "texts") for work in works),
        held=f"{HELD:,}",
        trained=TRAINED,
        pieces=f"{WORDS:,}",
        most=MAX_TOKENS,
        watched=" | ".join(f"{tokens:,} tokens" for tokens in WATCHED),
        rule="---|" * len(WATCHED),
        memory="\n".join(memory_row(work, points) for work in works),
    )


def row(work: Work, points: pd.DataFrame, along: str) -> str:
    own = points[(points["work"] == work.name) & (points["along"] == along)]
    found = slope(work, points, along)
    promise = (work.promise.order, work.promise.why) if along == "length" else ("texts", "each text by itself")
    cells = (work.name, along, len(own), f"{own['seconds'].iloc[0]:.2g}", f"{own['seconds'].iloc[-1]:.3g}")
    slopes = (
        f"{found.value:.2f} ± {found.error:.2f}",
        f"{found.promised:.2f} ({promise[0]})",
        found.verdict,
        promise[1],
    )
    return "| " + " | ".join(map(str, (*cells, *slopes))) + " |"


def memory_row(work: Work, points: pd.DataFrame) -> str:
    own = points[(points["work"] == work.name) & (points["along"] == "memory")]
    cells = (f"{row.megabytes:,.0f} ({int(row.texts):,})" for row in own.itertuples() if math.isfinite(row.megabytes))
    return f"| {work.name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
