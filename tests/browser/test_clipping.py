"""No words are cut on any page at any size: what does not fit is left out whole, goes to the next line or scrolls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_lab import until

from bnnviz_app.learn import languages, lessons
from bnnviz_app.pages import PAGES

#: Width and height of a projector, a laptop, a desktop, a tablet and a phone; the first three in projector mode too.
SIZES = ((1280, 720), (1400, 900), (1920, 1080), (1024, 768), (390, 844))
PROJECTED = SIZES[:3]
STEP_SIZES = ((1024, 768), (390, 844), (1280, 720))  # of a lesson, the last one as it goes on
#: Of the Lab, with the most in the headings of their cards.
RUNS = {
    "curve": "lab&target=network&data=toy_c&sampler=sgld",
    "classes": "lab&target=network&data=moons&sampler=nuts",
}
OFTEN = ("lab", "uncertainty", "classes")  # the others run nightly
# Words in a box that hides what is larger than it, in whichever shadow; of a box that scrolls its visible part counts.
CUT = r"""() => {
  const found = []
  const clips = (s) => s.overflowX !== "visible" || s.overflowY !== "visible"
  const scrolls = (v) => v === "auto" || v === "scroll"
  const up = (el) => el.assignedSlot ?? el.parentElement ?? el.getRootNode().host ?? null
  const look = (root) => {
    for (const el of root.querySelectorAll("*")) {
      if (el.shadowRoot) { look(el.shadowRoot) }
      for (const node of el.childNodes) {
        if (node.nodeType !== 3 || !node.textContent.trim()) { continue }
        if (!el.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) { continue }
        const range = document.createRange()
        range.selectNodeContents(node)
        for (const box of range.getClientRects()) {
          if (box.width < 2 || box.height < 2) { continue }
          let cut = null
          const shown = {l: box.left, r: box.right, t: box.top, b: box.bottom}
          for (let at = el; at && at !== document.documentElement; at = up(at)) {
            const s = getComputedStyle(at)
            if (s.clipPath !== "none" || s.clip !== "auto") { cut = "hidden"; break }
            if (!clips(s)) { continue }
            const r = at.getBoundingClientRect()
            if (r.width < 3 || r.height < 3) { cut = "hidden"; break }
            // What is left out whole is not cut; but what can be pressed is not to be out of reach.
            if (shown.t >= r.bottom - 1 || shown.b <= r.top + 1) {
              const pressed = el.closest("button, a, label, summary, [role=button]") && !scrolls(s.overflowY)
              cut = pressed ? `off, in a ${at.className}` : "hidden"
              break
            }
            // What lies in a box that scrolls is reached there; of the boxes around it its visible part counts.
            if (scrolls(s.overflowX)) { shown.l = Math.max(shown.l, r.left); shown.r = Math.min(shown.r, r.right) }
            else if (shown.l < r.left - 2 || shown.r > r.right + 2) { cut ??= `across in a ${at.className}` }
            if (scrolls(s.overflowY)) { shown.t = Math.max(shown.t, r.top); shown.b = Math.min(shown.b, r.bottom) }
            else if (shown.t < r.top - 3 || shown.b > r.bottom + 3) { cut ??= `down in a ${at.className}` }
            if (shown.r - shown.l < 1 || shown.b - shown.t < 1) { cut = "hidden"; break }
          }
          if (cut === null || cut === "hidden") { continue }
          found.push(`${node.textContent.trim().slice(0, 50)}: cut ${cut}`)
          break
        }
      }
    }
  }
  look(document)
  return found
}"""


# How much wider the largest box that scrolls across is than what it shows of it, in pixels.
WIDER = r"""() => {
  let most = 0
  const look = (root) => {
    for (const el of root.querySelectorAll("*")) {
      if (el.shadowRoot) { look(el.shadowRoot) }
      if (el.clientHeight > 300 && ["auto", "scroll"].includes(getComputedStyle(el).overflowX)) {
        most = Math.max(most, el.scrollWidth - el.clientWidth)
      }
    }
  }
  look(document)
  return most
}"""


# Figures whose drawing is larger than the place that they have: what does not fit is cut.
CUT_FIGURES = r"""() => {
  const found = []
  const look = (root, figure) => {
    for (const el of root.querySelectorAll("*")) {
      if (el.shadowRoot) { look(el.shadowRoot, el.matches(".bk-Figure") ? el : figure) }
      if (el.tagName !== "CANVAS" || !figure || !figure.checkVisibility()) { continue }
      const drawn = el.getBoundingClientRect(), place = figure.getBoundingClientRect()
      const over = Math.max(drawn.bottom - place.bottom, drawn.right - place.right)
      if (over > 2) { found.push(`${figure.getAttribute("aria-label")?.slice(0, 40)}: ${Math.round(over)} px`) }
    }
  }
  look(document, null)
  return found
}"""


def cut_words(page: Any, sizes: tuple[tuple[int, int], ...]) -> list[str]:
    """Return the words that are cut at these sizes, and in what."""
    found = []
    for width, height in sizes:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(900)
        found += [f"{width}x{height}: {words}" for words in page.evaluate(CUT)]
    return found


@pytest.mark.parametrize(
    ("mode", "sizes"),
    [("", SIZES), pytest.param("&projector=1", PROJECTED, marks=pytest.mark.slow)],
    ids=["plain", "projector"],
)
@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in (*PAGES, *RUNS)]
)
@pytest.mark.slow
def test_no_words_are_cut(
    name: str, mode: str, sizes: tuple[tuple[int, int], ...], open_page: Callable[..., Any], dashboard: Any
) -> None:
    address = f"{dashboard.url}?page={RUNS.get(name, name)}&play=1{mode}"
    page = open_page(address, viewport={"width": 1280, "height": 720})
    page.wait_for_timeout(6000)
    assert not cut_words(page, sizes)


@pytest.mark.parametrize(
    "name", [name if name == "thinning" else pytest.param(name, marks=pytest.mark.slow) for name in lessons.load()]
)
@pytest.mark.parametrize("language", languages.names())
def test_no_step_of_a_lesson_is_cut(name: str, language: str, open_page: Callable[..., Any], dashboard: Any) -> None:
    lesson = lessons.load(language)[name]
    address = f"{dashboard.url}?page=learn&lesson={name}&lang={language}"
    page = open_page(address, viewport={"width": 1280, "height": 720})
    found = []
    for heading in (*(step.title for step in lesson.steps), languages.page(language)["question"]):
        page.locator(".told h2", has_text=heading).wait_for(timeout=60_000)
        page.wait_for_timeout(3000)
        found += [*page.evaluate(CUT_FIGURES), *cut_words(page, STEP_SIZES)]
        page.locator(".way .next").click(timeout=10_000) if page.locator(".way .next").is_enabled() else None
    page.locator(".choice").nth(lesson.question.answer).click()
    page.locator(".verdict.good").wait_for()
    assert [*found, *cut_words(page, STEP_SIZES)] == []


def test_a_figure_makes_room_for_a_legend_that_comes_later(open_page: Callable[..., Any], dashboard: Any) -> None:
    page = open_page(f"{dashboard.url}?page=learn&lesson=images&step=2", viewport={"width": 1280, "height": 720})
    page.get_by_text("notMNIST", exact=True).first.wait_for(timeout=240_000)
    page.wait_for_timeout(1500)
    assert page.evaluate(CUT_FIGURES) == []


# How far a row of the figures lies below what is seen of them, in pixels; None as long as there is none.
ROW_BELOW = r"""() => {
  let below = null
  const look = (root) => {
    for (const el of root.querySelectorAll("*")) {
      if (!el.shadowRoot) { continue }
      const row = el.matches(".bk-panel-models-markup-HTML") ? el.shadowRoot.querySelector("tr:nth-child(ROW)") : null
      if (row) { below = row.getBoundingClientRect().bottom - el.getBoundingClientRect().bottom }
      look(el.shadowRoot)
    }
  }
  look(document)
  return below
}"""


@pytest.mark.parametrize(
    ("query", "rows", "sizes"),
    [
        ("page=lab&target=banana&sampler=bps", 8, SIZES[:1]),
        ("page=lab&target=banana&sampler=bps&projector=1", 9, SIZES[:1]),
        ("page=microscope&projector=1", 6, PROJECTED),
        ("page=learn&lesson=step-size&step=1&lang=de&projector=1", 7, SIZES[:1]),
    ],
    ids=["plain", "projector", "step sizes on a projector", "long German words on a projector"],
)
def test_the_figures_are_seen_at_once(
    query: str, rows: int, sizes: tuple[tuple[int, int], ...], open_page: Callable[..., Any], dashboard: Any
) -> None:
    page = open_page(f"{dashboard.url}?{query}&play=1", viewport={"width": 1280, "height": 720})
    row = ROW_BELOW.replace("ROW", str(rows))
    until(lambda: page.evaluate(row) is not None, 240, f"there are no {rows} figures")
    for width, height in sizes:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(1000)
        assert page.evaluate(row) <= 1, (width, height)


@pytest.mark.slow
def test_words_that_are_cut_are_found(open_page: Callable[..., Any], dashboard: Any) -> None:
    page = open_page(f"{dashboard.url}?page=lab", viewport={"width": 1280, "height": 720})
    style = "position: fixed; top: 0; left: 0; z-index: 9; width: 40px; overflow: hidden; white-space: nowrap"
    page.evaluate(f"() => document.body.insertAdjacentHTML('beforeend', `<p style='{style}'>words without room</p>`)")
    assert any("words without room" in words for words in page.evaluate(CUT))


@pytest.mark.parametrize("name", ["papers", "recordings"])
@pytest.mark.slow
def test_a_page_of_text_is_read_on_a_phone_without_scrolling_across(
    name: str, serve: Callable[..., Any], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    # The name of the folder of recordings has no place to break it, and is wider than the phone.
    served = serve({"BNNVIZ_HOME": str(tmp_path / ("long" * 30))})
    page = open_page(f"{served.url}?page={name}", viewport={"width": 390, "height": 844})
    page.locator("h1").first.wait_for(timeout=60_000)
    page.wait_for_timeout(2000)
    assert page.evaluate(WIDER) <= 1
