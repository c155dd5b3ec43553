"""Explain keys and marks in a dialog."""

from __future__ import annotations

import html
import json
from pathlib import Path

from bnnviz.figures.legend import line_html, mark_html
from bnnviz.figures.palette import ACCEPTED, DARK, KINDS, KNOWN, LIGHT, NOW, PICKED, UNIFORM, VISITED, Kind, Palette
from bnnviz.lessons import content
from bnnviz_app.components.guidance.dialogs import Dialog
from bnnviz_app.components.widgets import Text
from bnnviz_app.pages import OF_CLASS, PAGES
from bnnviz_app.theme import styles

MARKS: tuple[tuple[Kind, str], ...] = (
    (KINDS[1], "proposed, then rejected: the chain goes straight on"),
    (ACCEPTED, "proposed and accepted: the event that ends the segment"),
    (UNIFORM, "the uniform draw times the envelope: the proposal is accepted if this is below the rate"),
    (KINDS[2], "the velocity is reflected"),
    (KINDS[3], "the refresh clock rang: a new velocity is drawn"),
    (KINDS[5], "the rate was above the envelope, which was not a bound: a bias"),
    (NOW, "position of the watched chain; the arrow is its direction"),
    (VISITED, "leapfrog steps of the current move"),
    (PICKED, "a draw in the box that was drawn, or the event under the pointer"),
    (KNOWN, "the other draws, as long as there is a box"),
)
LINES = (
    ("rate", "blue", "", "along the present segment; only its positive part counts"),
    ("signed rate", "pale", "6 4", "below zero the chain descends, and no event can happen"),
    ("envelope", "orange", "", "the bound for the proposals; the thick part is in use"),
    ("refresh clock", "purple", "6 4", "when a new velocity will be drawn if nothing happens before"),
)
TITLE = "Keys and marks"
_STYLES = styles(__file__)
_HELP = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


class Guide:
    """Open the dialog behind the question mark."""

    def __init__(self, page: str) -> None:
        self._marks = Text("", stylesheets=[_STYLES["guide"]], sizing_mode="stretch_width")
        tables = _HELP | {"Words": dict(content.glossary().values())}
        self.words = _about(page) + "".join(f"<h3>{title}</h3>{_table(rows)}" for title, rows in tables.items())
        self._words = Text(self.words, stylesheets=[_STYLES["guide"]], sizing_mode="stretch_width")
        self._dialog = Dialog(TITLE, self._words, self._marks)
        self.root = self._dialog.root
        self.theme(False)

    def toggle(self) -> None:
        """Open or close."""
        self._dialog.show(not self._dialog.is_open)

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        rows = "".join(
            f"<tr><td>{sign}</td><td>{meaning}</td></tr>" for sign, meaning in _signs(DARK if dark else LIGHT)
        )
        self._marks.object = f"<h3>Marks and lines</h3><table>{rows}</table>"


def _signs(palette: Palette) -> list[tuple[str, str]]:
    marks = [(mark_html(kind, palette), meaning) for kind, meaning in MARKS]
    return marks + [
        (line_html(name, getattr(palette, role), palette, dash=dash), meaning) for name, role, dash, meaning in LINES
    ]


def _about(page: str) -> str:
    """Return the purpose of a page."""
    entry = (PAGES | OF_CLASS)[page]
    return f"<h2>{html.escape(entry.title)}</h2><p>{html.escape(entry.purpose)}</p>"


def _table(meanings: dict[str, str]) -> str:
    rows = "".join(f"<tr><td><kbd>{key}</kbd></td><td>{meaning}</td></tr>" for key, meaning in meanings.items())
    return f"<table>{rows}</table>"
