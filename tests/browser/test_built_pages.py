"""The documentation is built without a network: its links lead somewhere, and everybody can read its pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from docs.site.contents import ROOT

# In one file, so that it is built once.
pytestmark = pytest.mark.timeout(900)

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
        shown.on("console", lambda statement: problems.append(statement.text) if statement.type == "error" else None)
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


def test_a_lesson_plays_in_its_page(opened: Callable[..., Any]) -> None:
    shown = opened("concepts/thinning", color_scheme="dark")
    shown.locator("figure.lesson iframe").scroll_into_view_if_needed()
    frame = shown.frame_locator("figure.lesson iframe")
    frame.locator("nav button.on").click()
    frame.locator("h2", has_text="2.").wait_for()
    assert frame.locator("#where").inner_text().startswith("3")
    assert frame.locator("html").get_attribute("data-theme") == shown.locator("html").get_attribute("data-theme")
