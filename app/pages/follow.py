"""Show the teacher's run to a class: one page, which all who follow look at."""

from __future__ import annotations

from typing import Any

import panel as pn

from bnnviz import views
from bnnviz_app import address
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.following import FollowingSession
from bnnviz_app.heartbeat import Heartbeat
from bnnviz_app.learn import languages
from bnnviz_app.learn.piece import SpokenLanguage
from bnnviz_app.pages.base import RunPage
from bnnviz_app.pages.lab import LabPage
from bnnviz_app.polls.card import poll_card

_HIDDEN = frozenset({"sidebar", "transport"})


class FollowPage(LabPage):
    """Show what the teacher's Lab shows; nothing here can be chosen but the answer to a question."""

    name = "follow"

    def __init__(self, dark: bool, visit: address.Visit, language: str = "") -> None:
        self.language, self._asked = language or languages.DEFAULT, language
        super().__init__(dark, visit)
        self.guide.speak(self.language)
        for shown in self.components:
            shown.speak(self.language)

    def _session(self, spec: Any, heartbeat: Heartbeat) -> FollowingSession:
        return FollowingSession(spec, pn.state.cache["backend"], self, heartbeat, pn.state.curdoc)

    def _build(self, visit: address.Visit) -> None:
        super()._build(visit)
        self._polls = list(filter(None, [poll_card(self._asked)]))
        self.components += self._polls

    def _above(self) -> list[Any]:
        return [*(card.root for card in self._polls), *super()._above()]

    def _card(self, view: views.View) -> Card:
        """Return the card of a view, without what the teacher chooses there."""
        part = view.needs[0]
        card = Card(view, place=self.pairs.place(part), low_note=part == "path", whole_note=part != "path")
        card.speak(self.language)
        return card

    def _buttons(self) -> list[Any]:
        return []

    def _header(self, *buttons: Any) -> pn.Row:
        return pn.Row(margin=0)

    def _obey(self, visit: address.Visit) -> None:
        self._guided = True
        self._hidden = _HIDDEN
        self._conceal()

    def _lay_out(self) -> None:
        """Lay everything around the stage; nothing can be pressed but the answer to a question."""
        super()._lay_out()
        self.main[0].styles = {"pointer-events": "none"}
        self.main[0].append(SpokenLanguage(language=self.language))

    def _keys(self) -> dict[str, Any]:
        return {}

    def _in_address(self) -> dict[str, str]:
        return {}


def build(dark: bool) -> RunPage:
    """Build the page that all look at."""
    opening = LabPage.opening().checked()
    asked = address.flags(pn.state.session_args)
    language = languages.found(languages.asked(pn.state.session_args, pn.state.cookies)) or ""
    page = FollowPage(dark, address.Visit(opening, flags=asked), language)
    page.session.open()
    return page
