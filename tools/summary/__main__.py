"""python -m tools.summary: what the repository shows of its kept results.

README.md; in reports/results summary.md, findings.csv, vectors.csv and answer.svg, in reports/rendered summary.html and
summary-values.csv. Nothing is written where a sentence of README no longer holds.
"""

import argparse
import sys
from io import StringIO

from lib import charts
from lib.atomic_write import write_file
from lib.provenance import PROJECT
from papers import results
from tools.summary.page import RENDERED, answer, by_vectors, markdown, picture, render, write_summary


def main(given: list[str] | None = None) -> int:
    """Writes README, its picture, and the summaries, or checks README; exit code 1 where README is not right."""
    parser = argparse.ArgumentParser(prog="python -m tools.summary", description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="only check that README is what the kept results give")
    options = parser.parse_args(given)
    try:
        of, path = answer(), PROJECT / "README.md"
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    links = [f"[{page.stem}](reports/rendered/{page.name})" for page in sorted(RENDERED.glob("*.html"))]
    text = render("README.md.j2", of, pages=", ".join(links)) + "\n"
    for sentence in of.failed:
        print(f"a sentence of the answer no longer holds: {sentence}", file=sys.stderr)
    if options.check:
        right = path.read_text(encoding="utf-8") == text and not of.failed
        print("README.md is right" if right else "README.md is not what the kept results give")
        return int(not right)
    if of.failed:
        return 1
    charts.enable()
    forest, scatter = picture(of)
    (forest & scatter).resolve_scale(color="independent").save(drawing := StringIO(), format="svg")
    write_file(results.FOLDER / "answer.svg", drawing.getvalue())
    write_file(path, text)
    write_file(results.FOLDER / "summary.md", markdown(of))
    tried = by_vectors(results.kept("values"))
    write_file(results.FOLDER / "vectors.csv", tried.to_csv(index=False, float_format="%.4g"))
    write_file(results.FOLDER / "findings.csv", of.found.to_csv(index=False, float_format="%.6g"))
    page = write_summary(RENDERED, of)
    print(path, results.FOLDER / "answer.svg", page or "", sep="\n")
    return int(page is None)


if __name__ == "__main__":
    sys.exit(main())
