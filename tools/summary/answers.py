"""What the verdicts come to: one row for each claim and dataset, a sentence for each paper, and the answer."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from lib.papers import PAPERS, TITLES
from lib.papers.claims import CONTRAST, SIDES, counted, unit_in_brief
from lib.papers.ground_truth_claims import KEY as OURS
from tools.summary.claims import BEFORE, DECIDED, MIXED, first_share, in_order, in_words, kind, verdicts
from tools.summary.studies import Study
from tools.summary.values import counts, values

UNDECIDED, OWN = "no verdict", "own:"
CELL = ("claim", "answer", "words", "shown", "size", "unit", "n", "seeds", "marks", "again", "ours", "speaks", "share")
QUOTED = 3  # claims that the answer quotes of each side
ENOUGH = (20, 3)  # tests, and papers, for an answer other than "not settled"
NOT_YET = "Not settled: training has changed since the kept runs, and every verdict is to be made again."


class Answer(NamedTuple):
    """The answer to the project's question: in a sentence or two, some claims that it rests on, and what was run."""

    lead: str
    quoted: list[str]
    rest: str


class Tables(NamedTuple):
    """What is found in all studies: rows of `verdicts`, of `cells`, and of `values`."""

    claims: pd.DataFrame
    cells: pd.DataFrame
    values: pd.DataFrame

    @classmethod
    def of(cls, studies: Iterable[Study]) -> "Tables":
        """Judged anew."""
        studies = list(studies)
        claims = verdicts(studies)
        return cls(claims, cells(claims), values(studies))


def cells(found: pd.DataFrame) -> pd.DataFrame:
    """One row for each claim and dataset, in the order of `found`, rows of `tools.summary.claims.verdicts`.

    Returns:
        paper, short, dataset and CELL: claim; answer, of all models, or "mixed"; words: how many models; shown: the
        effect, the median over models; size: the effect with its interval, or the range over models; its unit; n
        (texts), seeds; marks: weak witness, could be chance (where all models are), stale (where one is); again: to be
        run again; ours: the paper does not claim it; speaks: as of `Claim`; share: of the models, contrasts aside, with
        the first verdict.
    """
    keys = ["paper", "short", "dataset"]
    rows = [dict(zip(keys, key, strict=True)) | cell(same) for key, same in found.groupby(keys, sort=False)]
    return pd.DataFrame(rows, columns=[*keys, *CELL])


def cell(rows: pd.DataFrame) -> dict[str, Any]:
    """What the verdicts for the models of one claim and dataset have in common; see `cells`."""
    judged = rows[~rows["verdict"].isin([CONTRAST, UNDECIDED])]
    some = judged if len(judged) else rows
    chance = some["verdict"].isin(DECIDED) & ~some["passes"].astype(bool)
    marks = {"weak witness": some["witness"].eq("weak").all(), "could be chance": chance.all()}
    marks |= {"stale": some["stale"].eq("stale").any()}
    return {
        "claim": rows["claim"].iloc[0], "answer": kind(rows), "words": in_words(rows),
        "shown": signed(judged["effect"].median(), rows["kind"].iloc[0]), "size": size(judged),
        "unit": unit_in_brief(some.iloc[0]), "n": int(some["n"].fillna(0).max()),
        "seeds": int(some["seeds"].fillna(0).max()), "marks": [mark for mark, holds in marks.items() if holds],
        "again": (rows["reason"] == BEFORE).all(), "ours": rows["source"].iloc[0].startswith("ours"),
        "speaks": rows["speaks"].iloc[0], "share": first_share(rows),
    }  # fmt: skip


def signed(effect: float, kind: str) -> str:
    """An effect in the least digits that show it: +0.22, or of "most runs" the share, 67%; "" for none."""
    return "" if effect != effect else f"{effect:.0%}" if kind == "most runs" else f"{effect:+.2f}"


def size(judged: pd.DataFrame) -> str:
    """+0.22 [+0.14, +0.30] tau-b; of several models +0.10 to +0.22 tau-b."""
    known = judged[judged["effect"].notna()]
    if known.empty:
        return ""
    first, of = known.iloc[0], known["kind"].iloc[0]
    ends = [signed(known["effect"].min(), of), signed(known["effect"].max(), of)]
    many = " to ".join(dict.fromkeys(ends))
    alone = f"{ends[0]} [{signed(first['low'], of)}, {signed(first['high'], of)}]"
    shown = alone if len(known) == 1 and first["low"] == first["low"] else many
    return f"{shown} {unit_in_brief(first)}"


def current(table: pd.DataFrame) -> pd.DataFrame:
    """The cells with a verdict: those of the present training code, or where there is none the stale ones."""
    table = table[~table["answer"].isin([CONTRAST, UNDECIDED])]
    present = table[~stale(table)]
    return present if len(present) else table


def stale(table: pd.DataFrame) -> pd.Series:
    """Which cells are of other training code than the present."""
    return table["marks"].map(lambda marks: "stale" in marks).astype(bool)


def sentence(table: pd.DataFrame, values: pd.DataFrame, paper: str) -> str:
    """What we find of a paper, with its number, in at most 30 words.

    Args:
        table: `cells`. values: `tools.summary.values.values`. paper: its key.
    """
    own = table[table["paper"].eq(paper) & ~table["dataset"].str.startswith(OWN)]
    own = own if paper == OURS else own[~own["ours"].astype(bool)]
    if own.empty:
        return "Not run yet."
    found = current(own)
    if found.empty:
        return f"To be run again: single seeds were not kept. {compared(values[values['paper'] == paper])}"
    decided, mixed = found[found["answer"].isin(DECIDED)], found[found["answer"].eq(MIXED)]
    decided = decided.iloc[decided["marks"].map(len).argsort(kind="stable")]  # those without a mark first
    mixed = mixed.sort_values("share", ascending=False, kind="stable")
    first = pd.concat([decided, mixed, found]).iloc[0]
    marks = f" ({', '.join(first['marks'])})" if first["marks"] else ""
    if first["answer"] == MIXED:
        words = first["words"].partition(";")[0]
        return f"On {first['dataset']}, “{first['short']}”: {words}; {first['size']}{marks}."
    return f"{tally(found)} On {first['dataset']}, “{first['short']}” is {first['answer']}: {measured(first)}{marks}."


def tally(found: pd.DataFrame) -> str:
    """3 of 8 tests support its claims, 4 contradict them."""
    supported, contradicted = (int(found["answer"].eq(word).sum()) for word in ("supported", "contradicted"))
    ends = ["s" if number == 1 else "" for number in (supported, contradicted)]
    return f"{supported} of {len(found)} tests support{ends[0]} its claims, {contradicted} contradict{ends[1]} them."


def compared(values: pd.DataFrame) -> str:
    """Of 80 published values within reach, 48 were measured: 11 are the same, 22 different, 15 open."""
    if values.empty:
        return "It has no published values."
    one = counts(values.assign(all=""), "all").iloc[0]
    reached = f"{one['published'] - one['out_of_reach']:,} published values within reach"
    if not one["ours"]:
        return f"None of {reached} has one of ours yet."
    numbers = f"{one['same']} are the same, {one['different']} different, {one['open']} open"
    return f"Of {reached}, {one['ours']:,} were measured: {numbers}."


def answer(table: pd.DataFrame, values: pd.DataFrame) -> Answer:
    """The answer by what was run; what rests on older code is named.

    It is about the papers' datasets and claims: those of `ground_truth`, which are ours, have their row in the table
    alone, and one's own text its rows.
    """
    table = table[(table["paper"] != OURS) & ~table["dataset"].str.startswith(OWN)]
    if table.empty:
        return Answer(f"Nothing has been run yet. {compared(values)}", [], "")
    found, again = current(table), int(stale(table).sum())
    old = found.empty or stale(found).all()
    lead, quoted = (NOT_YET, []) if old else sides(found)
    parts = []
    if len(found):
        where = f"{', '.join(in_order(found['dataset']))}; a test is a claim on a dataset, of either side or of none"
        tests = tally(found[~found["ours"].astype(bool)]).replace("its claims", "the papers' claims").rstrip(".")
        parts.append(f"{'By the older runs' if old else 'In all'} ({where}), {tests}; the rest decide nothing.")
    parts += [f"{counted(again, 'older result')} {'is' if again == 1 else 'are'} to be run again."] if again else []
    ours = values.loc[values["ours"].notna(), "stale"]
    of_old = ["These too are of older runs."] if len(ours) and ours.eq("stale").all() else []
    return Answer(lead, quoted, " ".join([*parts, compared(values), *of_old]))


def sides(found: pd.DataFrame) -> tuple[str, list[str]]:
    """What speaks for attention as an explanation and what against it, of the cells without any mark.

    Returns:
        how many tests speak for either side, in a sentence; claims of each side, in a sentence each.
    """
    unmarked = found[found["marks"].map(len).eq(0)]
    side = [SIDES.get(one) for one in zip(unmarked["speaks"], unmarked["answer"], strict=True)]
    pro, con = (unmarked[[one == which for one in side]] for which in ("for", "against"))
    papers = pd.concat([pro, con])["paper"].nunique()
    lead = "It is" if con.empty else "It is not" if pro.empty else "It depends"
    lead = lead if len(pro) + len(con) >= ENOUGH[0] and papers >= ENOUGH[1] else "Not settled"
    numbers = f"{counted(len(pro), 'test')} for attention as an explanation, {len(con)} against it"
    lead += f". Decided so far, in models that learned their task and not by chance among so many: {numbers}."
    return lead, [*quoted("For it", pro), *quoted("Against it", con)]


def quoted(side: str, found: pd.DataFrame) -> list[str]:
    """For it: “...” is supported (Serrano & Smith 2019; on sst +0.22 [+0.18, +0.27] F1). One of each paper first."""
    claims = found.drop_duplicates("short")
    claims = claims.iloc[claims.groupby("paper").cumcount().argsort(kind="stable")][:QUOTED]
    rows = [row for _, row in claims.iterrows()]
    whose = [f"ours, for {TITLES[row['paper']]}" if row["ours"] else TITLES[row["paper"]] for row in rows]
    return [
        f"{side}: “{row['claim']}” is {row['answer']} ({of}; on {row['dataset']} {measured(row)})."
        for row, of in zip(rows, whose, strict=True)
    ]


def measured(row: Mapping[str, Any]) -> str:
    """The effect of a cell, and whether it is a difference: difference +0.26 [+0.19, +0.33] tau-b."""
    claim = next((paper.claims[row["short"]] for paper in PAPERS.values() if row["short"] in paper.claims), None)
    return f"difference {row['size']}" if claim and claim.is_difference else row["size"]


def of_papers(table: pd.DataFrame, values: pd.DataFrame) -> list[list[str]]:
    """Of each paper its title, what it claims, what we find, and its notebook."""
    return [
        [paper.title, f"{paper.claim}.", sentence(table, values, paper.key), name] for name, paper in PAPERS.items()
    ]
