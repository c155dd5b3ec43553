"""Show a teacher's notes beside a lesson, in a window of their own."""

from __future__ import annotations

from collections.abc import Mapping

import panel as pn

from bnnviz.specs import url
from bnnviz_app import address
from bnnviz_app.learn import languages
from bnnviz_app.learn.notes import NotesPanel
from bnnviz_app.pages.base import TextPage

_LANGUAGE = "lang"


class NotesPage(TextPage):
    """Show the notes of the step that a lesson in another window of the browser is at."""

    name, draws = "notes", False

    def __init__(self, dark: bool, flags: Mapping[str, str], code: str) -> None:
        super().__init__(dark, flags)
        self.language = languages.found(code) or languages.DEFAULT
        self._flags |= {_LANGUAGE: self.language} if code else {}
        self.panel = NotesPanel(self.language, self._speak)
        self._lay_out(self.panel.root)
        self._say_around()
        self._dress()
        self._readdress()

    def _speak(self, language: str) -> None:
        self.language = language
        self._say_around()

    def _readdress(self) -> None:
        super()._readdress()
        self.panel.lead("?" + url.query_text({"page": "learn", **self.carried}))

    def _resize(self) -> None:
        super()._resize()
        self.panel.magnify(self.large)

    def _in_address(self) -> dict[str, str]:
        return {}


def build(dark: bool) -> NotesPage:
    """Build the page for the current session."""
    flags, _ = address.named(pn.state.session_args, _LANGUAGE)
    return NotesPage(dark, flags, languages.asked(pn.state.session_args, pn.state.cookies))
