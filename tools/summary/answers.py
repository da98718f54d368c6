"""What the verdicts come to: one row for each claim and dataset, a sentence for each paper, and the answer."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from papers import PAPERS, TITLES
from papers.claims import CONTRAST, QUESTIONS, Question, counted
from papers.ground_truth_claims import KEY as OURS
from papers.published import once
from tools.summary.claims import DECIDED, MIXED, UNDECIDED, cells, claim_of, in_order, verdicts
from tools.summary.studies import Study
from tools.summary.values import INCOMPLETE, counts, values

OWN = "own:"
ENOUGH, CLAIMS = 3, 2  # tests on real texts, and of how many claims, for an answer to a question
LONGEST = 30  # words of a paper's sentence
MADE_UP = ("planted", "babi")  # how the names of made-up texts begin
DOUBTS = {"weak witness", "could be chance"}  # marks
COUNTED = (
    "A test is one claim on one dataset. It counts if all its models that can be judged say the same of attention (one "
    "that is open, or a weak witness that disagrees, and it does not), and at least one of them is accurate and passes "
    "the correction for multiple testing (false discovery rate 5%). Of {number}, {real} {are} on "
    "real texts, {alone} rest on one kind of model, and {ours} are of claims that we added. A question leans to an "
    "answer of two tests or more, on two datasets or more, and more than twice as many as the other has. Most claims "
    "were written down after the first runs on sst. Tests share models and texts: they are no independent votes. Many "
    "claims count for neither side: shuffled weights, for one, leave a model less sure, so that erasing an item flips "
    "its decision more easily. In doubt is what weak witnesses alone say, or what could be chance. "
    "Where seeds were added, each look at the same model has its share of the 5%. A BiLSTM's dot attention "
    "stays nearly uniform from torch's default start of its query (Tutek & Šnajder 2020, appendix C), and has no "
    "verdict; started from N(0, 1) it is judged on sst. All else about Jain & Wallace's BiLSTMs on real texts is about "
    "additive attention."
)
DATASETS = {  # the datasets in an answer's sentences
    "sst": "sentences from film reviews",
    "20news": "posts on two sports",
    "agnews, agnews4": "news",
    "imdb, imdb-ratings, eraser_movies-sentences": "film reviews",
    "snli": "pairs of sentences: does one follow from the other? Of 4% of the training texts: weak witnesses",
    "babi1, babi2, babi3": "made-up stories with a question",
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
    """What is found in all studies: rows of `verdicts`, of `cells`, and of `values`; and the studies."""

    claims: pd.DataFrame
    cells: pd.DataFrame
    values: pd.DataFrame
    studies: list[Study]

    @classmethod
    def of(cls, studies: Iterable[Study]) -> "Tables":
        """Judged anew."""
        studies = list(studies)
        claims = verdicts(studies)
        return cls(claims, cells(claims), values(studies), studies)


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
        models, claim = re.split(r"; | \(", first["words"])[0], f"On {first['dataset']}, “{first['claim']}”"
        full = f"{claim} is mixed: {models}; {first['size']}{marks}."
        return full if len(full.split()) <= LONGEST else f"{claim}: {models}{marks}."
    model = first["model"] and f" for {first['model']}"
    claim = f"“{first['claim']}” is {first['answer']} on {first['dataset']}{model}{marks}"
    full = f"{claim}: {'; '.join(filter(None, (first['levels'], first['size'])))}."
    return full if len(full.split()) <= LONGEST else f"{claim}: {first['size']}."


def that_count(table: pd.DataFrame, paper: str) -> str:
    """How many tests of a paper's claims support them beyond doubt, contradict them (which, where), or do neither.

    Negligible effects are counted apart: they are decided, and neither.
    """
    found = current(claimed(table, paper))
    if found.empty:
        return "–"
    pro, con, small = beyond_doubt(found)
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
    """The cells in the order in which one is quoted: real texts, claims that prove something, the paper's, main ones.

    Args:
        first: columns that come before the last of these.
    """
    order, datasets = [short for paper in PAPERS.values() for short in paper.claims], in_order(found["dataset"])
    keys = {"made_up": made_up(found), "place": found["short"].map(order.index)}
    found = found.assign(**keys, at=found["dataset"].map(datasets.index))
    by = ["made_up", "idle", "ours", *first, "place", "at"]
    return found.sort_values(by, kind="stable").drop(columns=[*keys, "at"])


def beyond_doubt(found: pd.DataFrame) -> list[int]:
    """How many tests support what is claimed, how many contradict it, and of how many the effect is negligible."""
    clear = found.loc[~doubted(found), "answer"]
    return [int(clear.eq(word).sum()) for word in DECIDED]


def tally(found: pd.DataFrame) -> str:
    """What the tests of the papers' own claims come to; those of one or two runs, which decide nothing, apart."""
    once = found["answer"].eq("open") & found["seeds"].lt(3)
    few, found = int(once.sum()), found[~once]
    pro, con, small = beyond_doubt(found)
    idle, _, _ = beyond_doubt(found[found["idle"].astype(bool)])
    of_idle = f" ({idle} of them of claims that chance, mostly attention in a random order, could meet)" if idle else ""
    parts = [f"{pro} supported{of_idle}", f"{con} contradicted", *([f"{small} negligible"] if small else [])]
    doubt = int(found["answer"].isin(DECIDED).sum()) - pro - con - small
    parts += [f"{doubt} decided only by weak witnesses or possibly by chance"] if doubt else []
    numbers = {word: int(found["answer"].eq(word).sum()) for word in (MIXED, "open")}
    parts += [f"{number} {word}" for word, number in numbers.items() if number]
    more = f" {few} more {'has' if few == 1 else 'have'} one run or two, which decide nothing." if few else ""
    where = f" ({', '.join(in_order(found['dataset']))})" if len(found) else ""
    return f"{counted(len(found), 'test')} of the papers' own claims{where}: {', '.join(parts)}.{more}"


def compared(values: pd.DataFrame, causes: bool = False) -> str:
    """Of 80 published values within reach, we measured 48: 11 are the same, 22 different, 15 open (1 same and 9 open
    in one run or two, which can't be different).

    Args:
        causes: with how many of the different have a cause on record.
    """
    if values.empty:
        return "It has no published values."
    one = counts(values.assign(all=""), "all").iloc[0]
    reached = f"{one['published'] - one['out_of_reach']:,} published values within reach"
    if not one["ours"]:
        return f"None of {reached} has one of ours yet."
    known = f" (for {one['explained']} we have a probable cause, for {one['partly']} a part of one)"
    numbers = f"{one['same']} are the same, {one['different']} different{known if causes else ''}, {one['open']} open"
    of_few = f"{one['few_same']} of the same and {one['few'] - one['few_same']} of the open"
    numbers += f" ({of_few} rest on one run or two, which can't be different)" if one["few"] else ""
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
    clear = found[~doubted(found)]
    decided = clear[clear["side"].ne("") & ~stale(clear)]
    decided = to_quote(decided.assign(turned=decided["answer"].ne("supported")), "turned")  # supported reads easier
    asked = [
        Asked(question, *of_question(decided[decided["question"].eq(name)], found[found["question"].eq(name)]))
        for name, question in QUESTIONS.items()
        if clear["question"].eq(name).any()
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
    words = {"Yes": "{yes}", "Mostly yes": "{yes}, by most tests", "No": "{no}", "Mostly no": "{no}, by most tests"}
    clauses = [words[one.word].format(**one.question._asdict()) for one in asked if one.word in words]
    settled = [one.word for one in asked if not one.word.startswith(UNSETTLED)]
    rest, agreed = len(QUESTIONS) - len(settled), {"Yes": "It is", "No": "It is not"}
    first = "Not settled" if rest else agreed.get("".join(set(settled)), "It depends on what is asked")
    found = f" On real texts {'; '.join(clauses)}." if clauses else ""
    left = f"{'the other ' if found else ''}{counted(rest, 'question')} {'is' if rest == 1 else 'are'} undecided"
    takes = f"an answer takes {ENOUGH} tests on real texts, of {CLAIMS} claims or more."
    return f"{first}.{found} {left.capitalize()}: {takes}" if rest else f"{first}.{found}"


def of_question(decided: pd.DataFrame, found: pd.DataFrame) -> tuple[str, str, list[str]]:
    """The word, the answer and the quoted tests of `Asked`.

    Yes. “...”: +0.22 of the texts on sst; open on snli. (9 tests say yes, 5 on real texts; none says no.)
    And Yes: “...” (supported; ...).

    Args:
        found: the question's cells; what they gave elsewhere is stated beside a claim that is quoted, and where too
            few decide on real texts, one without a doubt is quoted that could have.
    """
    yes, no = (decided[decided["side"].eq(side)] for side in ("for", "against"))
    real = [int((~made_up(some)).sum()) for some in (yes, no)]
    numbers = "; ".join(says(*one) for one in zip(("yes", "no"), (len(yes), len(no)), real, strict=True))
    numbers += "; all are of one claim" if len(decided) > 1 and decided["short"].nunique() == 1 else ""
    claims = decided.loc[~made_up(decided), "short"].nunique()
    word = in_a_word(real, [len(yes), len(no)], claims, [some["dataset"].nunique() for some in (yes, no)])
    tests = [f"{side}{quoted(some.iloc[0], found)}" for side, some in (("Yes", yes), ("No", no)) if len(some)]
    others = found[~made_up(found) & ~doubted(found) & found["side"].eq("")]
    others = others[others["answer"].isin(["open", "negligible"])]
    others = to_quote(others[~others["short"].isin(decided["short"])])
    if word.startswith(UNSETTLED) and len(others):
        tests.append(f"Not decided{quoted(others.iloc[0], found.iloc[:0])}")
    if decided.empty:
        return word, f"{word}: no test is conclusive. {in_brief(others, found)}".rstrip(), tests
    return (
        word,
        f"{word}. {in_brief(yes if len(yes) >= len(no) else no, found)} ({numbers[0].upper()}{numbers[1:]}.)",
        tests,
    )


def in_brief(some: pd.DataFrame, found: pd.DataFrame) -> str:
    """“...”: +0.22 of the texts on sst, +0.40 on imdb; open on snli. Of the first of `some`; "" for none."""
    if some.empty:
        return ""
    row = some.iloc[0]
    same = found[found["short"].eq(row["short"]) & found["answer"].eq(row["answer"]) & ~doubted(found)]
    order = in_order(same["dataset"])
    same = same.sort_values("dataset", key=lambda names: names.map(order.index)).to_dict("records")
    unit = "runs" if row["unit"] == "of the runs" else row["unit"]
    shown = [f"{one['shown']} {'' if number else unit}".strip() for number, one in enumerate(same)]
    where = ", ".join(f"{size} on {one['dataset']}" for size, one in zip(shown, same, strict=True))
    word = "" if row["answer"] in ("supported", "contradicted") else f"{verdict_of(row)}, "
    return f"{opening(row)}“{row['claim']}”: {'; '.join([word + where, *elsewhere(row, found)])}."


def verdict_of(row: Mapping[str, Any]) -> str:
    """The answer of a cell; where models differ, how many give which."""
    return row["words"] if row["answer"] == MIXED else row["answer"]


def opening(row: Mapping[str, Any]) -> str:
    """What stands before the claim of a cell that does not speak as the claim does; "" where it does."""
    if row["answer"] == "contradicted":
        return "We find the opposite of "
    claim, refutes = claim_of(row), row["answer"] != "supported" and row["side"]
    return "We do not find " if claim and refutes and row["side"] != claim.speaks else ""


def elsewhere(row: Mapping[str, Any], found: pd.DataFrame) -> list[str]:
    """open on snli; one run only on babi2; supported, in doubt, on imdb: where a cell's claim has another answer."""
    others = found[found["short"].eq(row["short"]) & (found["answer"].ne(row["answer"]) | doubted(found))]
    words = others["answer"].mask(others["answer"].eq("open") & others["seeds"].le(1), "one run only")
    words = words.where(~doubted(others) | words.eq("open"), words + ", in doubt,")
    return [f"{word} on {', '.join(same['dataset'])}" for word, same in others.groupby(words, sort=False)]


def says(word: str, tests: int, real: int) -> str:
    """2 tests say no, 1 on real texts"""
    if not tests:
        return f"none says {word}"
    where = "on real texts" if tests == real else f"{real or 'none'} on real texts"
    return f"{counted(tests, 'test')} {'says' if tests == 1 else 'say'} {word}, {where}"


def in_a_word(real: Sequence[int], every: Sequence[int], claims: int, datasets: Sequence[int]) -> str:
    """The answer to a question by its tests on real texts; where they are too few, what all of its tests lean to.

    Args:
        real, every: how many tests on real texts, and how many in all, say yes, and how many no.
        claims: of how many claims those on real texts are. datasets: on how many all that say yes are, and no.
    """
    few = sum(real) < ENOUGH or claims < CLAIMS
    pro, con = every if few else real
    word = "" if pro <= 2 * con and con <= 2 * pro else "yes" if pro > con else "no"
    if few:
        return f"{UNSETTLED}, leaning to {word}" if word and datasets[word == "no"] > 1 else UNSETTLED
    return f"Mostly {word}" if word and pro and con else (word or "yes and no").capitalize()


def quoted(row: Mapping[str, Any], found: pd.DataFrame) -> str:
    """: “...” (supported; Serrano & Smith 2019; FLAN-rnn, sst: +0.22 [+0.18, +0.27] F1; open on planted)."""
    claim, whose = claim_of(row), TITLES[row["paper"]]
    if row["ours"] and claim:
        whose = f"{claim.source} of {whose}" if re.search("section|table|figure", claim.source) else claim.source
    place = ", ".join(filter(None, (row["model"], row["dataset"])))
    numbers = "; ".join(filter(None, (row["levels"], measured(row))))
    where = "; ".join([whose, f"{place}: {numbers}", *elsewhere(row, found)])
    start = opening(row)
    return f"{f'. {start}' if start else ': '}“{row['claim']}” ({verdict_of(row)}; {where})."


def measured(row: Mapping[str, Any]) -> str:
    """The effect of a cell, and whether it is a difference: difference +0.26 [+0.19, +0.33] tau-b."""
    claim = claim_of(row)
    return f"difference {row['size']}" if claim and claim.is_difference else row["size"]


def of_papers(table: pd.DataFrame, values: pd.DataFrame) -> list[list[str]]:
    """Of each paper its title, what it claims, what we find, how many tests say so, and its notebook."""
    return [
        [paper.title, f"{paper.claim}.", sentence(table, values, paper.key), that_count(table, paper.key), name]
        for name, paper in PAPERS.items()
    ]
