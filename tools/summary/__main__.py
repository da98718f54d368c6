"""python -m tools.summary: what the repository shows of its kept results.

README.md; in reports/results summary.md, findings.csv and answer.svg, in reports/rendered summary.html and
summary-values.csv.
With --check nothing is written, and the exit code is 1 where README's sentences or numbers are no longer those of the
kept results.
"""

import argparse
import sys

from lib import charts
from lib.atomic_write import write_text
from lib.provenance import PROJECT
from papers import results
from tools.summary.page import RENDERED, answer, markdown, picture, render, write_summary


def links() -> list[str]:
    """The rendered pages as links of README."""
    return [f"[{path.stem}](reports/rendered/{path.name})" for path in sorted(RENDERED.glob("*.html"))]


def main(given: list[str] | None = None) -> int:
    """Writes README, its picture, and the summaries; or checks README."""
    parser = argparse.ArgumentParser(prog="python -m tools.summary", description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="only check that README is what the kept results give")
    options = parser.parse_args(given)
    of, path = answer(), PROJECT / "README.md"
    text = render("README.md.j2", of, pages=", ".join(links()))
    text += "\n" if text else ""
    for sentence in of.failed:
        print(f"a sentence of the answer no longer holds: {sentence}", file=sys.stderr)
    if options.check:
        stale = path.read_text(encoding="utf-8") != text
        print(
            "README.md is not what the kept results give; run python -m tools.summary"
            if stale
            else "README.md is right"
        )
        return int(stale or bool(of.failed))
    if not text.strip():
        return 1
    charts.enable()
    forest, scatter = picture(of)
    (forest & scatter).resolve_scale(color="independent").save(results.FOLDER / "answer.svg")
    write_text(path, text)
    write_text(results.FOLDER / "summary.md", markdown(of))
    write_text(results.FOLDER / "findings.csv", of.found.to_csv(index=False, float_format="%.6g"))
    print(path, results.FOLDER / "answer.svg", write_summary(RENDERED), sep="\n")
    return int(bool(of.failed))


if __name__ == "__main__":
    sys.exit(main())
