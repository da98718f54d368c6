"""What the verdicts come to: one row for each claim and dataset, a sentence for each paper, and the answer."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from lib.papers import PAPERS, TITLES
from lib.papers.claims import CONTRAST, QUESTIONS, Claim, Question, counted
from lib.papers.findings import in_digits, unit_in_brief
from lib.papers.ground_truth_claims import KEY as OURS
from lib.published import once
from tools.summary.claims import DECIDED, MIXED, first_share, in_order, in_words, kind, verdicts
from tools.summary.studies import Study
from tools.summary.values import INCOMPLETE, counts, values

UNDECIDED, OWN = "no verdict", "own:"
CELL = ("claim", "answer", "words", "model", "shown", "size", "unit", "levels", "n", "seeds")
CELL += ("marks", "ours", "side", "question", "share")
ENOUGH, CLAIMS = 3, 2  # tests on real texts, and of how many claims, for an answer to a question
LONGEST = 30  # words of a paper's sentence
MADE_UP = ("planted", "babi")  # how the names of made-up texts begin
DOUBTS = {"weak witness", "could be chance"}  # marks
COUNTED = (
    "A test is one claim on one dataset. It counts if all its models that can be judged agree, weak witnesses and open "
    "ones too, and at least one of them is accurate and passes the correction for multiple testing (false discovery "
    "rate 5%). Of {number}, {real} {are} on "
    "real texts, {alone} rest on one kind of model, and {ours} are of claims that we added. A question leans to an "
    "answer of two tests or more, and more than twice as many as the other has. Most claims were written down after "
    "the first runs on sst. Tests share models and texts: they are no independent votes. Many claims speak for neither "
    "side."
)
DATASETS = {  # the datasets in an answer's sentences
    "sst": "sentences from film reviews",
    "20news": "posts on two sports",
    "agnews, agnews4": "news",
    "imdb, imdb-ratings, eraser_movies-sentences": "film reviews",
    "snli": "pairs of sentences: does one follow from the other?",
    "babi1, babi2": "made-up stories with a question",
    "planted, planted-documents": "made-up reviews whose right explanation is known",
}
NOT_YET = "Not settled: training has changed since the kept runs, and every verdict is to be made again."
UNSETTLED = "Undecided"


class Asked(NamedTuple):
    """One of QUESTIONS: its answer in a word, with the number of tests on either side, and a test of each, quoted."""

    question: Question
    word: str
    short: str
    tests: list[str]


class Answer(NamedTuple):
    """The answer: in a word or two, by each of QUESTIONS, how it was counted, and what was run."""

    lead: str
    by_question: list[Asked]
    counting: str
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
        paper, short, dataset and CELL: claim; answer, of all models, or "mixed"; words: how many models; model: its
        name, where one alone is shown; shown: the effect, the median over models; size: the effect with its interval,
        or the range over models; its unit; levels: of a difference the two values, where it is of one model; n (texts),
        seeds; these, unless models differ, without weak witnesses, where there are others; marks: weak witness (where
        all models are), could be chance (where all others could), stale (where one is); ours:
        the paper does not claim it; side: that of the
        answer, of `Claim.side`; question: of QUESTIONS; share: of the models, contrasts aside, with the
        first verdict.
    """
    keys = ["paper", "short", "dataset"]
    rows = [dict(zip(keys, key, strict=True)) | cell(same) for key, same in found.groupby(keys, sort=False)]
    return pd.DataFrame(rows, columns=[*keys, *CELL])


def cell(rows: pd.DataFrame) -> dict[str, Any]:
    """What the verdicts for the models of one claim and dataset have in common; see `cells`."""
    judged = rows[~rows["verdict"].isin([CONTRAST, UNDECIDED])]
    some = judged if len(judged) else rows
    weak, chance = some["witness"].eq("weak"), some["verdict"].isin(DECIDED) & ~some["passes"].astype(bool)
    marks = {"weak witness": weak.all(), "could be chance": chance.any() and (weak | chance).all()}
    marks |= {"stale": some["stale"].eq("stale").any()}
    answer, sound = kind(rows), judged[~weak[judged.index]]
    shown = judged if sound.empty or answer == MIXED else sound
    of_shown = shown if len(shown) else some
    return {
        "claim": rows["claim"].iloc[0], "answer": answer, "words": in_words(rows),
        "model": shown["model"].iloc[0] if len(shown) == 1 else "",
        "shown": in_digits(shown["effect"].median(), some.iloc[0]), "size": size(shown),
        "unit": unit_in_brief(some.iloc[0]), "levels": shown["sides"].iloc[0] if len(shown) == 1 else "",
        "n": int(of_shown["n"].fillna(0).max()), "seeds": int(of_shown["seeds"].fillna(0).max()),
        "marks": [mark for mark, holds in marks.items() if holds],
        "ours": rows["source"].iloc[0].startswith("ours"),
        "side": some["side"].iloc[0] if answer != MIXED and some["side"].nunique() == 1 else "",
        "question": rows["question"].iloc[0], "share": first_share(rows),
    }  # fmt: skip


def size(judged: pd.DataFrame) -> str:
    """+0.22 [+0.14, +0.30] tau-b; of several models +0.10 to +0.22 tau-b, or +0.22 tau-b in each of 2 models."""
    known = judged[judged["effect"].notna()]
    if known.empty:
        return ""
    first = known.iloc[0]
    least, most, low, high = (
        in_digits(number, first)
        for number in (known["effect"].min(), known["effect"].max(), first["low"], first["high"])
    )
    shown = f"{least} [{low}, {high}]" if len(known) == 1 and low else least if least == most else f"{least} to {most}"
    each = f" in each of {len(known)} models" if len(known) > 1 and least == most else ""
    return f"{shown} {unit_in_brief(first)}{each}"


def current(table: pd.DataFrame) -> pd.DataFrame:
    """The cells with a verdict: those of the present training code, or where there is none the stale ones."""
    table = table[~table["answer"].isin([CONTRAST, UNDECIDED])]
    present = table[~stale(table)]
    return present if len(present) else table


def stale(table: pd.DataFrame) -> pd.Series:
    """Which cells are of other training code than the present."""
    return table["marks"].map(lambda marks: "stale" in marks).astype(bool)


def doubted(table: pd.DataFrame) -> pd.Series:
    """Which cells are of weak witnesses alone, or could be chance."""
    return table["marks"].map(lambda marks: bool(DOUBTS & set(marks))).astype(bool)


def made_up(table: pd.DataFrame) -> pd.Series:
    """Which cells are of made-up texts."""
    return table["dataset"].str.startswith(MADE_UP)


def sentence(table: pd.DataFrame, values: pd.DataFrame, paper: str) -> str:
    """What we find of a paper: a claim with its verdict and number, in at most LONGEST words.

    Args:
        table: `cells`. values: `tools.summary.values.values`. paper: its key.
    """
    own = claimed(table, paper)
    if own.empty:
        return "Not run yet."
    found = current(own)
    if found.empty:
        return f"No verdict yet. {compared(values[values['paper'] == paper])}"
    by_doubt = to_quote(found).assign(doubts=found["marks"].map(len)).sort_values("doubts", kind="stable")
    first = pd.concat([by_doubt[by_doubt["answer"].isin([*DECIDED, MIXED])], by_doubt]).iloc[0]
    marks = f" ({', '.join(first['marks'])})" if first["marks"] else ""
    if first["answer"] == MIXED:
        models, said = re.split(r"; | \(", first["words"])[0], f"On {first['dataset']}, “{first['claim']}”"
        full = f"{said} is mixed: {models}; {first['size']}{marks}."
        return full if len(full.split()) <= LONGEST else f"{said}: {models}{marks}."
    model = first["model"] and f" for {first['model']}"
    said = f"“{first['claim']}” is {first['answer']} on {first['dataset']}{model}{marks}"
    full = f"{said}: {'; '.join(filter(None, (first['levels'], first['size'])))}."
    return full if len(full.split()) <= LONGEST else f"{said}: {first['size']}."


def that_count(table: pd.DataFrame, paper: str) -> str:
    """How many tests of a paper's claims support them beyond doubt, contradict them (which, where), or do neither.

    Negligible effects are counted apart: they are decided, and neither.
    """
    found = current(claimed(table, paper))
    if found.empty:
        return "–"
    pro, con = supporting(found)
    small = int((found["answer"].eq("negligible") & ~doubted(found)).sum())
    negligible = f"{small} negligible, " if small else ""
    against = found[found["answer"].eq("contradicted") & ~doubted(found)].groupby("short", sort=False)["dataset"]
    which = "; ".join(f"{short} ({', '.join(where)})" for short, where in against)
    undecided = len(found) - pro - con - small
    return f"{pro} supported, {negligible}{undecided} undecided, {con} contradicted{which and f': {which}'}"


def claimed(table: pd.DataFrame, paper: str) -> pd.DataFrame:
    """The cells of a paper's own claims, on its datasets; of `ground_truth`, whose claims are all ours, all."""
    own = table[table["paper"].eq(paper) & ~table["dataset"].str.startswith(OWN)]
    return own if paper == OURS else own[~own["ours"].astype(bool)]


def to_quote(found: pd.DataFrame, *first: str) -> pd.DataFrame:
    """The cells in the order in which one is quoted: real texts, the paper's own claims, and its main ones first.

    Args:
        first: columns that come before the last of these.
    """
    order, datasets = [short for paper in PAPERS.values() for short in paper.claims], in_order(found["dataset"])
    keys = {"made_up": made_up(found), "place": found["short"].map(order.index)}
    found = found.assign(**keys, at=found["dataset"].map(datasets.index))
    return found.sort_values(["made_up", "ours", *first, "place", "at"], kind="stable").drop(columns=[*keys, "at"])


def supporting(found: pd.DataFrame) -> tuple[int, int]:
    """How many tests support what is claimed, and how many contradict it, beyond doubt."""
    clear = found.loc[~doubted(found), "answer"]
    return int(clear.eq("supported").sum()), int(clear.eq("contradicted").sum())


def tally(found: pd.DataFrame) -> str:
    """What the tests of the papers' own claims come to; those of one or two runs, which decide nothing, apart."""
    once = found["answer"].eq("open") & found["seeds"].lt(3)
    few, found = int(once.sum()), found[~once]
    pro, con = supporting(found)
    decided = int(found["answer"].isin(["supported", "contradicted"]).sum())
    parts = [f"{pro} supported", f"{con} contradicted"]
    parts += [f"{doubt} decided only by weak witnesses or possibly by chance"] if (doubt := decided - pro - con) else []
    numbers = {word: int(found["answer"].eq(word).sum()) for word in (MIXED, "negligible", "open")}
    parts += [f"{number} {word}" for word, number in numbers.items() if number]
    more = f" {few} more {'has' if few == 1 else 'have'} one run or two, which decide nothing." if few else ""
    where = f" ({', '.join(in_order(found['dataset']))})" if len(found) else ""
    return f"{counted(len(found), 'test')} of the papers' own claims{where}: {', '.join(parts)}.{more}"


def compared(values: pd.DataFrame, causes: bool = False) -> str:
    """Of 80 published values within reach, we measured 48: 11 are the same, 22 different, 15 open.

    Args:
        causes: with how many of the different have a cause on record.
    """
    if values.empty:
        return "It has no published values."
    one = counts(values.assign(all=""), "all").iloc[0]
    reached = f"{one['published'] - one['out_of_reach']:,} published values within reach"
    if not one["ours"]:
        return f"None of {reached} has one of ours yet."
    known = f" (for {one['explained']} an experiment found the cause, for {one['partly']} a part or a probable one)"
    same = f"{one['same']} are the same" + (f" ({one['few']} in one run or two)" if one["few"] else "")
    numbers = f"{same}, {one['different']} different{known if causes else ''}, {one['open']} open"
    part = int(once(values).query("ours.notna()")["dataset"].isin(INCOMPLETE).sum()) if causes else 0
    shares = ", ".join(f"{name} {share:.0%}" for name, share in INCOMPLETE.items())
    beside = f" {part} of ours are of datasets with a part of their training texts ({shares})." if part else ""
    return f"Of {reached}, we measured {one['ours']:,}: {numbers}.{beside}"


def answer(table: pd.DataFrame, values: pd.DataFrame) -> Answer:
    """The answer by what was run; what rests on older code is named.

    It is about the papers' datasets and claims: those of `ground_truth`, which are ours, have their row in the table
    alone, and one's own text its rows.
    """
    table = table[(table["paper"] != OURS) & ~table["dataset"].str.startswith(OWN)]
    if table.empty:
        return Answer(f"Nothing has been run yet. {compared(values)}", [], "", "")
    found, again = current(table), int(stale(table).sum())
    old = len(found) > 0 and stale(found).all()
    lead, by_question, counting = (NOT_YET, [], "") if old else sides(found)
    parts = []
    theirs = found[~found["ours"].astype(bool)]
    parts += [f"{'By the older runs' if old else 'So far'}, {tally(theirs)}"] if len(theirs) else []
    parts += [f"{counted(again, 'older result')} {'needs' if again == 1 else 'need'} rerunning."] if again else []
    stale_ones = int(once(values)[["ours", "stale"]].dropna(subset="ours")["stale"].eq("stale").sum())
    of_old = [f"Of ours, {stale_ones} are of older runs."] if stale_ones else []
    return Answer(lead, by_question, counting, " ".join([*parts, compared(values, causes=True), *of_old]))


def sides(found: pd.DataFrame) -> tuple[str, list[Asked], str]:
    """What speaks for attention as an explanation and what against it, of the cells without any mark.

    Returns:
        the answer in few words; each of QUESTIONS with a test that counts; and how the tests were counted.
    """
    found = found[~doubted(found)]
    decided = found[found["side"].ne("") & ~stale(found)]
    decided = to_quote(decided.assign(turned=decided["answer"].ne("supported")), "turned")  # supported reads easier
    asked = [
        Asked(question, *of_question(decided[decided["question"].eq(name)], every))
        for name, question in QUESTIONS.items()
        if len(every := found[found["question"].eq(name)])
    ]
    numbers = {"number": counted(len(decided), "test"), "real": int((~made_up(decided)).sum())}
    numbers |= {"alone": int(decided["model"].ne("").sum()), "ours": int(decided["ours"].sum())}
    numbers["are"] = "is" if numbers["real"] == 1 else "are"
    return (
        short_answer(asked) if len(decided) else "Not settled: no test is conclusive.",
        asked,
        COUNTED.format(**numbers),
    )


def short_answer(asked: Sequence[Asked]) -> str:
    """The answer in few words: what the questions that have one come to, and how many have none."""
    said = {"Yes": "{yes}", "Mostly yes": "{yes}, by most tests", "No": "{no}", "Mostly no": "{no}, by most tests"}
    clauses = [said[one.word].format(**one.question._asdict()) for one in asked if one.word in said]
    settled = [one.word for one in asked if not one.word.startswith(UNSETTLED)]
    rest, agreed = len(QUESTIONS) - len(settled), {"Yes": "It is", "No": "It is not"}
    first = "Not settled" if rest else agreed.get("".join(set(settled)), "It depends on what is asked")
    found = f" On real texts {'; '.join(clauses)}." if clauses else ""
    left = f"{'the other ' if found else ''}{counted(rest, 'question')} {'is' if rest == 1 else 'are'} undecided"
    takes = f"an answer takes {ENOUGH} tests on real texts, of {CLAIMS} claims or more."
    return f"{first}.{found} {left.capitalize()}: {takes}" if rest else f"{first}.{found}"


def of_question(decided: pd.DataFrame, found: pd.DataFrame) -> tuple[str, str, list[str]]:
    """The word, the answer and the quoted tests of `Asked`.

    Yes: 9 tests say yes (5 on real texts), 2 tests say no (1 on real texts). And Yes: “...” (supported; ...).

    Args:
        found: the question's cells without a doubt; what they gave elsewhere is stated beside a claim that is quoted,
            and where too few decide on real texts, one is quoted that could have.
    """
    yes, no = (decided[decided["side"].eq(side)] for side in ("for", "against"))
    real = [int((~made_up(some)).sum()) for some in (yes, no)]
    numbers = ", ".join(says(*one) for one in zip(("yes", "no"), (len(yes), len(no)), real, strict=True))
    numbers += "; all are of one claim" if len(decided) > 1 and decided["short"].nunique() == 1 else ""
    claims = decided.loc[~made_up(decided), "short"].nunique()
    word = in_a_word(real, [len(yes), len(no)], claims)
    short = f"{word}: {numbers}." if len(decided) else f"{word}: no test is conclusive."
    tests = [f"{said}{quoted(some.iloc[0], found)}" for said, some in (("Yes", yes), ("No", no)) if len(some)]
    others = found[~made_up(found) & found["side"].eq("") & found["answer"].isin(["open", "negligible"])]
    others = to_quote(others[~others["short"].isin(decided["short"])])
    if word.startswith(UNSETTLED) and len(others):
        tests.append(f"Not decided{quoted(others.iloc[0], found.iloc[:0])}")
    return word, short, tests


def says(word: str, tests: int, real: int) -> str:
    """2 tests say no (1 on real texts)."""
    if not tests:
        return f"none says {word}"
    return f"{counted(tests, 'test')} {'says' if tests == 1 else 'say'} {word} ({real} on real texts)"


def in_a_word(real: Sequence[int], every: Sequence[int], claims: int) -> str:
    """The answer to a question by its tests on real texts; where they are too few, what all of its tests lean to.

    Args:
        real, every: how many tests on real texts, and how many in all, say yes, and how many no.
        claims: of how many claims those on real texts are.
    """
    few = sum(real) < ENOUGH or claims < CLAIMS
    pro, con = every if few else real
    word = "" if pro <= 2 * con and con <= 2 * pro else "yes" if pro > con else "no"
    if few:
        return f"{UNSETTLED}, leaning to {word}" if word and max(pro, con) > 1 else UNSETTLED
    return f"Mostly {word}" if word and pro and con else (word or "yes and no").capitalize()


def quoted(row: Mapping[str, Any], found: pd.DataFrame) -> str:
    """: “...” (supported; Serrano & Smith 2019; FLAN-rnn, sst: +0.22 [+0.18, +0.27] F1; open on planted)."""
    claim, whose = claim_of(row), TITLES[row["paper"]]
    if row["ours"] and claim:
        whose = f"{claim.source} of {whose}" if re.search("section|table|figure", claim.source) else claim.source
    others = found[found["short"].eq(row["short"]) & found["answer"].ne(row["answer"])]
    words = others["answer"].mask(others["answer"].eq("open") & others["seeds"].le(1), "one run only")
    elsewhere = [f"{word} on {', '.join(same['dataset'])}" for word, same in others.groupby(words, sort=False)]
    place = ", ".join(filter(None, (row["model"], row["dataset"])))
    numbers = "; ".join(filter(None, (row["levels"], measured(row))))
    where = "; ".join([whose, f"{place}: {numbers}", *elsewhere])
    if row["answer"] == "contradicted":
        return f". We find the opposite of “{row['claim']}” ({where})."
    return f": “{row['claim']}” ({row['answer']}; {where})."


def measured(row: Mapping[str, Any]) -> str:
    """The effect of a cell, and whether it is a difference: difference +0.26 [+0.19, +0.33] tau-b."""
    claim = claim_of(row)
    return f"difference {row['size']}" if claim and claim.is_difference else row["size"]


def claim_of(row: Mapping[str, Any]) -> Claim | None:
    """The claim of a cell."""
    return next((paper.claims[row["short"]] for paper in PAPERS.values() if row["short"] in paper.claims), None)


def of_papers(table: pd.DataFrame, values: pd.DataFrame) -> list[list[str]]:
    """Of each paper its title, what it claims, what we find, how many tests say so, and its notebook."""
    return [
        [paper.title, f"{paper.claim}.", sentence(table, values, paper.key), that_count(table, paper.key), name]
        for name, paper in PAPERS.items()
    ]
