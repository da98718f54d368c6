"""A page in a browser without network, and whatever goes wrong on it."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Visit:
    """A page in the browser, and whatever went wrong on it."""

    page: object
    wrong: list[str] = field(default_factory=list)


@contextmanager
def visit(chromium, file: Path, scheme: str = "light", width: int = 1280, script: bool = True):
    """A file in a fresh context of the browser, when all its charts are drawn; closed with the block."""
    size = {"width": width, "height": 800}
    context = chromium.new_context(offline=True, color_scheme=scheme, viewport=size, java_script_enabled=script)
    page = context.new_page()
    seen = Visit(page)
    page.on("console", lambda message: seen.wrong.append(f"console {message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.wrong.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (seen.wrong.append("dialog"), dialog.dismiss()))
    allowed = ("data:", file.as_uri())
    page.on("request", lambda request: request.url.startswith(allowed) or seen.wrong.append(f"asked for {request.url}"))
    page.goto(file.as_uri(), timeout=60_000)
    if script and page.locator("[data-chart]").count():
        page.wait_for_selector("html[data-charts=drawn]", timeout=60_000)
    try:
        yield seen
    finally:
        context.close()
