"""Say what the pages of a test that failed were like, in its report: that is read where no picture is kept."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from playwright.sync_api import Error

_PATIENCE_MS = 3000
_LOG_LINES = 30
# What a page has: the models of its document, its elements, and the first words that are read.
_STATE = """() => ({
  state: document.readyState,
  visibility: document.visibilityState,
  elements: document.querySelectorAll("*").length,
  roots: (window.Bokeh?.documents ?? []).flatMap((each) => each.roots().map((root) => root.type)),
  words: document.body?.innerText.slice(0, 200) ?? "",
})"""


def described(page: Any) -> str:
    """Return in lines what a page is like, and whether its browser paints."""
    return f"{page.url}\n  {_state(page)}\n  The browser {'paints' if _paints(page) else 'paints no frame'}."


def last_lines(logs: Iterable[Path]) -> str:
    """Return the last lines of each log that there is."""
    found = [path for path in logs if path.is_file()]
    texts = [path.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:] for path in found]
    return "\n".join(f"{path.name}:\n" + "\n".join(lines) for path, lines in zip(found, texts, strict=True))


def _state(page: Any) -> str:
    try:
        # Unlike `evaluate` it ends where the page is stuck.
        return str(page.wait_for_function(_STATE, polling=100, timeout=_PATIENCE_MS).json_value())
    except Error as error:
        return f"The page does not answer: {str(error).splitlines()[0]}"


def _paints(page: Any) -> bool:
    """Return whether the page is given a frame to paint."""
    try:
        page.wait_for_function("() => true", polling="raf", timeout=_PATIENCE_MS)
    except Error:
        return False
    return True
