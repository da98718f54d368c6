"""A report in a real browser, without network: every chart is drawn, and nothing hostile in the data runs."""

from pathlib import Path

import pytest
from pages import visit

import notebooks
from tools.report.__main__ import main

NOTE = f"{notebooks.HOSTILE} {notebooks.RIGHT_TO_LEFT} {notebooks.EMOJI}"


@pytest.fixture(scope="module")
def made(browser, forked_kernels, tmp_path_factory) -> Path:
    """The report of the hostile notebook."""
    folder = tmp_path_factory.mktemp("reports")
    notebooks.hostile(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RESULTS_HOME", str(folder / "none"))  # the summary is of this report alone
        arguments = ["hostile", "-p", "note", NOTE, "--notebooks", str(folder), "--output", str(folder)]
        assert main(arguments) == 0
    return next(folder.glob("hostile-*.html"))


@pytest.fixture(scope="module", params=[("light", 1280), ("light", 768), ("dark", 320)], ids=str)
def unfolded(request, chromium, made):
    """The page with all its details open: (the visit, its width)."""
    with visit(chromium, made, *request.param) as visited:
        visited.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        yield visited, request.param[1]


def text_contrast(page, selector: str) -> float:
    """The lowest contrast (1 to 21, WCAG) between the page's ground and the words that `selector` finds."""
    return page.evaluate(
        """selector => {
          const channels = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
          const light = colour => channels(colour).map(v => v / 255)
            .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const ground = light(getComputedStyle(document.body).backgroundColor);
          const contrast = words => (Math.max(words, ground) + 0.05) / (Math.min(words, ground) + 0.05);
          const colour = selector.includes("svg") ? "fill" : "color";
          return Math.min(...Array.from(document.querySelectorAll(selector))
            .map(element => contrast(light(getComputedStyle(element)[colour]))));
        }""",
        selector,
    )


def test_every_chart_is_drawn_and_words_stand_out_and_nothing_scrolls_sideways(unfolded):
    (seen, width), page = unfolded, unfolded[0].page
    assert page.locator("[data-chart]").count() == notebooks.CHARTS
    assert page.locator("[data-drawn=yes] svg.marks").count() == notebooks.CHARTS
    sizes = page.eval_on_selector_all("svg.marks", "all => all.map(one => one.getBoundingClientRect().width)")
    assert min(sizes) > 100 and page.locator("math").count() >= 3
    axes = "svg .role-axis-label text, svg .role-axis-title text, svg .role-legend-label text"
    for words in ("main p", "main td", "figcaption", "summary", axes):
        assert 4.5 <= text_contrast(page, words) <= 21, words
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.wrong == []


def test_hostile_words_are_shown_and_never_run(unfolded):
    seen, _ = unfolded
    for place in (".findings", ".settings", "pre.log", "figcaption", ".dataframe td"):
        assert "<script>alert(1)</script>" in "".join(seen.page.locator(place).all_text_contents()), place
    text = seen.page.locator("main").inner_text()
    assert notebooks.EMOJI in text and "שלום" in text
    assert seen.page.locator("main img, main script:not([type='application/json'])").count() == 0
    seen.page.locator("svg.marks").first.hover()
    assert seen.wrong == []


def test_a_detail_is_closed_until_it_is_opened_or_linked_to_and_its_chart_is_as_wide_as_the_page(chromium, made):
    with visit(chromium, made) as seen:
        chart, other = (seen.page.locator(f"#figure-{number} svg.marks").first for number in (3, 2))
        assert not chart.is_visible() and other.is_visible()
        seen.page.set_viewport_size({"width": 700, "height": 800})
        seen.page.get_by_text("A smaller part").last.click()
        seen.page.wait_for_function("document.querySelector('#figure-3 svg.marks').getBoundingClientRect().width > 500")
        assert seen.page.get_by_text("It is folded.").is_visible() and seen.wrong == []
        seen.page.reload()
        seen.page.wait_for_selector("html[data-charts=drawn]")
        assert not chart.is_visible()
        seen.page.goto(f"{made.as_uri()}#a-smaller-part")
        seen.page.reload()
        seen.page.wait_for_selector("html[data-charts=drawn]")
        assert chart.is_visible()
    with visit(chromium, made, script=False) as seen:
        assert seen.page.get_by_text("It is folded.").is_visible()
        assert seen.page.locator("figure.chart noscript p").first.is_visible()


def test_the_page_is_complete_and_its_policy_stops_what_might_slip_through(chromium, made):
    """A script put into the page by another way does not run: the policy knows its own scripts by their hash."""
    with visit(chromium, made) as seen:
        page = seen.page
        assert page.title().startswith("A small study")
        assert page.locator("details.code").count() >= 8 and page.locator("details.code[open]").count() == 0
        assert page.locator("details.log").count() == 1 and page.locator("details.log[open]").count() == 0
        assert page.locator(".settings tbody tr").count() == 9 and page.locator(".settings .changed").count() == 1
        assert page.locator(".findings > .scroll td").count() == 2
        assert "quick run" in page.locator(".quick").inner_text()
        order = page.eval_on_selector_all("main :is(h1, .findings, blockquote)", "all => all.map(one => one.tagName)")
        assert order[:3] == ["H1", "BLOCKQUOTE", "ASIDE"], "the paper's question, then what is found"
        targets = page.eval_on_selector_all("nav a[href^='#']", "all => all.map(one => one.getAttribute('href'))")
        assert len(targets) >= 3 and all(page.locator(f"[id='{target[1:]}']").count() == 1 for target in targets)
        page.locator("#figure-2 svg .mark-rect.role-mark path").first.hover()
        page.wait_for_selector("#vg-tooltip-element.visible")
        assert seen.wrong == []
        make = "const one = document.createElement('script'); one.textContent = 'window.ran = 1'"
        page.evaluate(f"{make}; document.body.append(one)")
        assert page.evaluate("window.ran") is None
        assert any("Content Security Policy" in line for line in seen.wrong)


def test_the_index_opens(chromium, made):
    with visit(chromium, made.parent / "index.html", "dark") as seen:
        page = seen.page
        assert page.locator(".card").count() == 1
        assert notebooks.HOSTILE in page.locator(".card li").first.inner_text()
        for width in (1280, 320):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert 4.5 <= text_contrast(page, ".card li") <= 21 and seen.wrong == []
        page.locator(".card h2 a").click()
        page.wait_for_selector("html[data-charts=drawn]")
        assert page.url == made.as_uri()
