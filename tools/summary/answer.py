"""The numbers in README's sentences, looked up by the ids of findings, and whether the sentences still hold."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from papers import show
from papers.effects import FINDINGS
from papers.published import ANSWERS


class Missing(KeyError):
    """A number that no kept result gives."""


@dataclass
class Answer:
    """What the templates say with numbers.

    A key is the id of a finding, a dataset and, where it is not the first that the finding is about, the model:
    "J1 sst", "J1 sst average + additive".

    found     rows of `papers.judge.judge`, of the main runs
    values    rows of `papers.published.compare`
    failed    the sentences that the results no longer bear out, with what they lean on
    """

    found: pd.DataFrame
    values: pd.DataFrame
    failed: list[str] = field(default_factory=list)

    def row(self, key: str) -> dict:
        """The row of a key; `Missing` where there is none."""
        name, dataset, *model = key.split(maxsplit=2)
        rows = self.found[self.found["finding"].eq(name) & self.found["dataset"].eq(dataset)].to_dict("records")
        rows = [row for row in rows if (row["model"] == model[0] if model else FINDINGS[name].is_about(row))]
        if not rows:
            raise Missing(f"no kept result of {key!r}")
        return rows[0]

    def interval(self, key: str, of: str = "") -> str:
        """The effect with its interval (`of` the "second_" vectors), and the number of runs, where fewer than three."""
        row = self.row(key)
        row |= {name: row[of + name] for name in ("effect", "low", "high", "runs")}
        return show.measured(row) + (f" ({row['runs']} run{'s' if row['runs'] > 1 else ''})" if row["runs"] < 3 else "")

    def paper(self, key: str) -> str:
        """What the paper printed."""
        return show.number(show.printed(self.row(key)), FINDINGS[key.split()[0]])

    def ends(self, name: str, datasets: str, what: str = "effect", model: str = "", percent: bool = False) -> str:
        """The least and the largest over datasets of the effect, chance or paper: "0.25 to 0.37"."""
        rows = [self.row(f"{name} {dataset} {model}".strip()) for dataset in datasets.split()]
        rows = [row | {"paper": show.printed(row)} for row in rows]
        ends = min(row[what] for row in rows), max(row[what] for row in rows)
        texts = [f"{end:.0%}"[:-1] if percent else show.number(end, FINDINGS[name]) for end in ends]
        return " to ".join(dict.fromkeys(texts))

    def value(self, side: str, dataset: str, quantity: str, **where: str) -> str:
        """A value of published.csv, "theirs", or "ours" with its interval."""
        rows = self.values[self.values["dataset"].eq(dataset) & self.values["quantity"].eq(quantity)]
        for name, wanted in where.items():
            rows = rows[rows[name].eq(wanted)]
        if rows.empty:
            raise Missing(f"no value of {quantity!r} on {dataset} where {where}")
        each = [rows.iloc[0][name] for name in ("theirs", "ours", "low", "high")]
        theirs, ours, low, high = (show.short(f"{value:.2f}") if pd.notna(value) else "" for value in each)
        return theirs if side == "theirs" else f"{ours} [{low}, {high}]" if low else ours

    def leans(self, needs: str, caller: Callable[[], str]) -> str:
        """A sentence, while it holds what it needs ("J6 sst = yes, J6 snli = no"); else "", and it is in `failed`."""
        pairs = [part.strip().rsplit(" = ", 1) for part in needs.split(",")]
        try:
            wrong = [key for key, word in pairs if self.row(key)["word"] != word]
            sentence = caller()
        except Missing as error:
            self.failed.append(str(error))
            return ""
        if wrong:
            self.failed.append(f"{', '.join(wrong)}: {sentence.strip()}")
        return "" if wrong else sentence

    def compared(self) -> dict[str, str]:
        """Of the printed values that count how many have ours, and how many are what, in percent."""
        counts = counts_by_paper(self.values)
        ours = int(counts["ours"].sum())
        shares = {answer: f"{counts[answer].sum() / ours:.0%}" for answer in ANSWERS}
        r = {row.paper: show.short(f"{row.r:.2f}") for row in counts.itertuples() if pd.notna(row.r)}
        return {"ours": f"{ours:,}", "counted": f"{counts['counted'].sum():,}"} | shares | {"r": r}


def counts_by_paper(values: pd.DataFrame) -> pd.DataFrame:
    """Of each paper how many printed values count, how many have ours, how many of ANSWERS, r, and median distance."""
    rows = []
    for paper, same in values[values["counted"]].groupby("paper", sort=False):
        ours = same[same["ours"].notna()]
        row = {answer: int(ours["answer"].eq(answer).sum()) for answer in ANSWERS}
        row |= {"r": ours["theirs"].corr(ours["ours"], min_periods=3), "distance": ours["difference"].abs().median()}
        rows.append(row | {"paper": paper, "counted": len(same), "ours": len(ours)})
    return pd.DataFrame(rows)
