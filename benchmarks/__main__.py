"""python -m benchmarks: times every row of the table and writes benchmarks/results.md and results.csv.

CPU seconds in one thread; the straightforward way runs in the same process, on a sample where all texts take too long.
How the cost grows with longer and with more texts is another command: python -m benchmarks.growth.
"""

import argparse
import csv
import os
import platform
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported

import numpy as np
import torch

from benchmarks import texts, work
from benchmarks.work import Row

HERE = Path(__file__).resolve().parent
MEASURED = "work texts ours_s goal_s straightforward_s timed_texts ratio goal_ratio difference"
WITH_FORWARD = "ours_with_forward_s straightforward_with_forward_s ratio_with_forward"
COLUMNS = (*MEASURED.split(), *WITH_FORWARD.split())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--texts", type=int, help="only so many texts of each split (a trial run: writes nothing)")
    parser.add_argument("--only", default="", help="only the rows whose name contains this (writes nothing)")
    parser.add_argument("--ours", action="store_true", help="leave the straightforward ways out (writes nothing)")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    name, rows = _rows(chosen.texts)
    results = []
    for row in rows:
        if chosen.only.lower() in row.name.lower():
            results.append(_timed(row, chosen.ours))
            print("  ".join(f"{key} {value}" for key, value in results[-1].items()), flush=True)
    if not (chosen.texts or chosen.only or chosen.ours):
        _write(name, results)


def _rows(count: int | None) -> tuple[str, list[Row]]:
    name, train, test = texts.short(count)
    of_training = [work.training(train), *work.adversaries(train)]
    return name, [
        *of_training,
        *work.short_rows(test),
        *work.long_rows(texts.long(count)),
        *work.mixed_rows(texts.mixed(count)),
    ]


def _timed(row: Row, ours_only: bool) -> dict[str, object]:
    found, seconds = _best(row.ours)
    lengths = row.split.lengths
    spread = f"{lengths.mean():.0f}" + (f" ({lengths.min()} to {lengths.max()})" if np.ptp(lengths) else "")
    result = {"work": row.name, "texts": f"{len(lengths)} of {spread} tokens"}
    result |= {"ours_s": _short(seconds), "goal_s": _short(row.goal.seconds)}
    if ours_only:
        return result
    sample = min(row.sample or len(row.split), len(row.split))
    order, split = texts.by_length(texts.first(row.split, sample))
    some = row.prepare(split)
    theirs, seconds_of_sample = _best(lambda: row.theirs(some))
    # by tokens: the first texts may be longer or shorter than the others
    share = max(_cost(row, sample), 1) / _cost(row)
    naive = seconds_of_sample / share
    result |= {"straightforward_s": _short(naive), "timed_texts": sample, "ratio": _short(naive / seconds)}
    result["goal_ratio"] = _short(row.goal.ratio) if row.goal.ratio else ""
    if row.forward:
        own, whole = seconds + _best(row.forward)[1], naive + _best(lambda: row.prepare(split))[1] / share
        result |= dict(zip(WITH_FORWARD.split(), map(_short, (own, whole, whole / own)), strict=True))
    if row.compare:
        own = found[order] if isinstance(found, np.ndarray) else [found[i] for i in order]
        result["difference"] = f"{row.compare(own, theirs):.1e}"
    return result


def _cost(row: Row, sample: int | None = None) -> float:
    """What the straightforward way's time grows with: tokens, and for leave-one-out their squares."""
    power = 2 if row.name == "leave-one-out" else 1
    return float((row.split.lengths[:sample].astype(float) ** power).sum())


def _best(do, enough: float = 3.0) -> tuple[object, float]:
    """What it returns, and its shortest CPU time over several runs; once where it takes more than 20 seconds."""
    times, found = [], None
    while len(times) < 2 or (sum(times) < enough and len(times) < 20):
        started = time.process_time()
        found = do()
        times.append(time.process_time() - started)
        if times[0] > 20:
            break
    return found, min(times)


def _short(number: float) -> str:
    return f"{number:.3g}" if number < 100 else f"{number:.0f}"


def _write(name: str, results: list[dict[str, object]]) -> None:
    with (HERE / "results.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(results)
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}, one thread"
    lines = [
        "# How fast the measures are",
        "",
        "Made by `make bench`. CPU seconds; the ratio is what holds on another machine. The straightforward way",
        "(`benchmarks/naive.py`) was timed on `timed texts` of them and scaled up by tokens. Goals: of the ratio, the",
        "time of the authors' released code over the seconds aimed at. Difference: the largest one, as a share of the",
        "largest importance (gradient, leave-one-out) or absolute (tau); where both are random, ours minus theirs on",
        "average (permutations: probability; adversary: JSD in nats). With forward: what starts from hidden states and",
        "attention, with the forward pass that computes them counted on both sides.",
        "",
        f"Short texts: {name}. {versions}.",
        "",
        "| " + " | ".join(column.replace("_s", " (s)").replace("_", " ") for column in COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
        *("| " + " | ".join(str(result.get(column, "")) for column in COLUMNS) + " |" for result in results),
        "",
    ]
    (HERE / "results.md").write_text("\n".join(lines), encoding="utf-8")
    print(f"wrote {HERE / 'results.md'}", file=sys.stderr)


if __name__ == "__main__":
    main()
