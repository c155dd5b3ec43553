"""Show the teacher's run to a class: one page, which all who follow look at."""

from __future__ import annotations

from typing import Any

import panel as pn

from bnnviz_app import address
from bnnviz_app.following import FollowingSession
from bnnviz_app.heartbeat import Heartbeat
from bnnviz_app.pages.base import RunPage
from bnnviz_app.pages.lab import LabPage
from bnnviz_app.polls.card import poll_card

_HIDDEN = frozenset({"sidebar", "transport"})


class FollowPage(LabPage):
    """Show what the teacher's Lab shows; nothing here can be chosen but the answer to a question."""

    name = "follow"

    def _session(self, spec: Any, heartbeat: Heartbeat) -> FollowingSession:
        return FollowingSession(spec, pn.state.cache["backend"], self, heartbeat, pn.state.curdoc)

    def _build(self, visit: address.Visit) -> None:
        super()._build(visit)
        self._polls = list(filter(None, [poll_card()]))
        self.components += self._polls

    def _above(self) -> list[Any]:
        return [*(card.root for card in self._polls), *super()._above()]

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

    def _keys(self) -> dict[str, Any]:
        return {}

    def _in_address(self) -> dict[str, str]:
        return {}


def build(dark: bool) -> RunPage:
    """Build the page that all look at."""
    opening = LabPage.opening().checked()
    page = FollowPage(dark, address.Visit(opening))
    page.session.open()
    return page
