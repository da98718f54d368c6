"""The list of the reports that were made: reports/index.html."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lib.atomic_write import write_text
from lib.progress import spoken
from tools.report.figures import small_drawing
from tools.report.page import environment, memory, policy, style


def kept_summary(page: Path) -> dict[str, Any] | None:
    """What a finished report says of itself; None where there is no such report. See `tools.report.page.page`."""
    return kept(page, "summary")[0]


def kept(page: Path, *names: str) -> list[dict[str, Any] | None]:
    """What a finished report keeps under each of the names; None where there is no such report, or no such thing."""
    try:
        text = page.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        text = ""
    finished = text if text.rstrip().endswith("</html>") else ""
    patterns = [rf'<script type="application/json" id="{name}">(.*?)</script>' for name in names]
    found = [re.search(pattern, finished, re.DOTALL) for pattern in patterns]
    return [json.loads(one[1]) if one else None for one in found]


def write_index(folder: Path) -> Path:
    """Write the list of all reports in `folder`, the newest first."""
    summaries = [summary for path in folder.glob("*.html") if (summary := kept_summary(path))]
    summaries.sort(key=lambda summary: summary["made"], reverse=True)
    reports = [
        summary | {"link": quote(summary["file"]), "drawing": _drawing(summary), "cost": _cost(summary)}
        for summary in summaries
    ]
    text = environment().get_template("index.html.j2").render(reports=reports, style=style(), policy=policy([]))
    return write_text(folder / "index.html", text)


def _cost(summary: dict[str, Any]) -> str:
    """Time and memory in words; a report of before memory was measured has the time alone."""
    told = f", peak memory {memory(summary['peak'])}" if "peak" in summary else ""
    return spoken(summary["seconds"]) + told


def _drawing(summary: dict[str, Any]) -> str:
    charts = [finding["chart"] for finding in summary["findings"] if finding.get("chart")]
    identity = "c" + hashlib.sha256(summary["file"].encode()).hexdigest()[:6]
    return small_drawing(charts[0], identity) if charts else ""
