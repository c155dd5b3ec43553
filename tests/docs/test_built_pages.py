"""The documentation is built without a network: its links lead somewhere, and everybody can read its pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from PIL import Image

from docs.site import reference, replays
from docs.site.contents import BELOW, ROOT

# In one file, so that it is built once.
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

LARGEST_MB, LARGEST_REPLAY_MB = 60, 2
#: One page of each kind.
PAGES = [
    *("index", "project", "glossary", "changelog", "concepts/index", "concepts/thinning", "manual/tables"),
    *("contributing/add_a_sampler", "gallery/index", "gallery/trace", "reference/api", "reference/bnnviz.Run"),
    *("reference/bnnviz.diagnostics", "reference/samplers", "reference/commands", "notebooks/02_thinning"),
]
#: Without asking for style sheets, which a page of a file may not.
AXE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    "iframes": False,
    "preload": False,
    "resultTypes": ["violations"],
}
#: Dark, only colours are other ones.
IN_BOTH = """async (options) => {
  const found = []
  for (const scheme of ["light", "dark"]) {
    document.documentElement.dataset.theme = document.documentElement.dataset.mode = scheme
    const asked = scheme === "light" ? options : {...options, runOnly: ["color-contrast", "link-in-text-block"]}
    for (const each of (await axe.run(asked)).violations) {
      const places = each.nodes.slice(0, 3).map((node) => node.target.join(" "))
      if (["serious", "critical"].includes(each.impact)) { found.push(`${scheme}: ${each.id} ${places.join(", ")}`) }
    }
  }
  return found
}"""
#: What loads something where it stands.
LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "srcset", "video": "src"}


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the pages, built as `make docs` does it, where nothing can be asked of another machine."""
    out = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "docs.site.build", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800, env={**os.environ})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    return out / "html"


class Read(HTMLParser):
    """What a page links to, loads and can be linked to by.

    Parameters
    ----------
    text : str
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = {"", "#", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element has."""
        given = dict(attrs)
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if LOADS.get(tag) in given and given.get("rel") not in ("canonical", "next", "prev", "index", "search"):
            self.loads.append(given[LOADS[tag]])


@pytest.fixture(scope="module")
def read(html: Path) -> dict[Path, Read]:
    """Return what each page has; replays have a test of their own, and a template of the theme is no page."""
    pages = [path for path in html.rglob("*.html") if "_static" not in path.parts]
    return {path: Read(path.read_text(encoding="utf-8")) for path in pages}


def test_every_link_between_pages_leads_somewhere(read: dict[Path, Read]) -> None:
    lost = []
    for path, page in read.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = target in read and unquote(parts.fragment) not in read[target].places
            if not target.is_file() or known:
                lost.append(f"{path.name}: {link}")
    assert not lost


def test_pages_load_nothing_from_elsewhere(html: Path, read: dict[Path, Read]) -> None:
    for path, page in read.items():
        elsewhere = [link for link in page.loads if urlsplit(link).scheme not in ("", "data")]
        assert not elsewhere, f"{path.relative_to(html)} loads {elsewhere}"
    for path in html.rglob("*.css"):
        found = re.findall(r"url\(\s*['\"]?(https?:)?//|@import\s+['\"]https?:", path.read_text(encoding="utf-8"))
        assert not found, path


def test_it_has_every_page_every_replay_and_a_size_that_fits(html: Path) -> None:
    listed = {name.rpartition("<")[2].rstrip(">") for entries in BELOW.values() for name in entries if "*" not in name}
    absent = {name for name in listed if not (html / f"{name}.html").exists()}
    assert absent <= {"papers"}  # where the table of the papers has not been written
    assert all((html / f"{entry.page}.html").exists() for entry in reference.entries())
    for name in replays.listed():
        size = (html / "_static" / "replays" / f"{name}.html").stat().st_size / 1e6
        assert size < LARGEST_REPLAY_MB, f"{name} has {size:.2f} MB"
    assert sum(path.stat().st_size for path in html.rglob("*") if path.is_file()) < 1e6 * LARGEST_MB


@pytest.fixture
def opened(browser: Any, html: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page from its file without a network; nothing may go wrong on it."""
    problems: list[str] = []
    contexts = []

    def opened(name: str, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 720}, offline=True, **options)
        contexts.append(context)
        shown = context.new_page()
        shown.set_default_timeout(120_000)  # machines are shared
        shown.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        shown.on("pageerror", lambda error: problems.append(str(error)))
        shown.on("request", lambda asked: None if _is_here(asked.url) else problems.append(f"asked for {asked.url}"))
        shown.goto((html / f"{name}.html").as_uri())
        return shown

    yield opened
    for context in contexts:
        context.close()
    assert not problems


def _is_here(url: str) -> bool:
    return urlsplit(url).scheme in ("file", "data", "blob", "about")


def test_axe_finds_nothing_serious_on_a_page_of_each_kind(opened: Callable[..., Any]) -> None:
    assert not _serious(opened, PAGES)


@pytest.mark.demand
def test_axe_finds_nothing_serious_on_any_page(opened: Callable[..., Any], html: Path, read: dict[Path, Read]) -> None:
    assert not _serious(opened, [str(path.relative_to(html).with_suffix("")) for path in read])


def _serious(opened: Callable[..., Any], pages: list[str]) -> list[str]:
    """Return what axe finds on pages, light and dark."""
    found = []
    # What fades has other colours while it does.
    shown = opened("index", reduced_motion="reduce")
    for name in pages:
        shown.goto(_beside(shown.url, name), wait_until="load")
        shown.add_style_tag(content="* {transition: none !important; animation: none !important}")
        shown.evaluate(AXE_SCRIPT)
        found += [f"{name}, {each}" for each in shown.evaluate(IN_BOTH, AXE)]
    return found


def _beside(url: str, name: str) -> str:
    return f"{url.partition('/html/')[0]}/html/{name}.html"


#: Pages with pictures of each kind: of the repository, of the gallery, and kept by notebooks.
PICTURED = ("index", "gallery/index", "gallery/trace", "notebooks/02_thinning", "notebooks/04_race")


def test_no_picture_is_a_light_box_in_a_dark_page(opened: Callable[..., Any]) -> None:
    """The mean of what is seen of each; of white boxes it is above 150 of 255."""
    shown = opened("index", color_scheme="dark", reduced_motion="reduce")
    light, seen = [], 0
    for name in PICTURED:
        shown.goto(_beside(shown.url, name), wait_until="load")
        for picture in shown.locator("article img:visible, article .cell_output .text_html:visible").all()[:6]:
            picture.scroll_into_view_if_needed()
            mean = float(np.mean(Image.open(BytesIO(picture.screenshot())).convert("L")))
            seen += 1
            light += [f"{name}: {mean:.0f}"] if mean > 110 else []
    assert seen > 12
    assert not light


def test_a_replay_plays_in_its_page(opened: Callable[..., Any]) -> None:
    shown = opened("concepts/thinning", color_scheme="dark")
    shown.locator("figure.replay iframe").scroll_into_view_if_needed()
    frame = shown.frame_locator("figure.replay iframe")
    said = [frame.locator("main").inner_text()]
    for _ in range(2):
        frame.locator("#next").click()
        said.append(frame.locator("main").inner_text())
    assert frame.locator("#where").inner_text().startswith("3")
    assert frame.locator("html").get_attribute("data-theme") == shown.locator("html").get_attribute("data-theme")
    # Each step of thinning says what it did, and no two of these do the same.
    assert len(set(said)) == 3 and "envelope" in said[2]
