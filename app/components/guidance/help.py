"""Explain keys and words in a dialog."""

from __future__ import annotations

import html
import json
from pathlib import Path

from bnnviz.lessons import content
from bnnviz_app.components.guidance.dialogs import Dialog
from bnnviz_app.components.widgets import Text
from bnnviz_app.pages import OF_CLASS, PAGES
from bnnviz_app.theme import styles

TITLE = "Keys"
_STYLES = styles(__file__)
_HELP = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


class Guide:
    """Open the dialog behind the question mark."""

    def __init__(self, page: str) -> None:
        tables = _HELP | {"Words": dict(content.glossary().values())}
        entry = (PAGES | OF_CLASS)[page]
        about = f"<h2>{html.escape(entry.title)}</h2><p>{html.escape(entry.purpose)}</p>"
        self.words = about + "".join(f"<h3>{title}</h3>{_table(rows)}" for title, rows in tables.items())
        self._dialog = Dialog(TITLE, lambda: [Text(self.words, stylesheets=[_STYLES["guide"]])])
        self.root = self._dialog.root

    def toggle(self) -> None:
        """Open or close."""
        self._dialog.show(not self._dialog.is_open)


def _table(meanings: dict[str, str]) -> str:
    rows = "".join(f"<tr><td><kbd>{key}</kbd></td><td>{meaning}</td></tr>" for key, meaning in meanings.items())
    return f"<table>{rows}</table>"
