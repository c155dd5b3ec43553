"""Show the question of the teacher on a student's page, which answers it."""

from __future__ import annotations

from typing import Any

import panel as pn
import param
from panel.custom import JSComponent

from bnnviz_app.access import lobby, roles
from bnnviz_app.access.gate import Gate
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import script, set_changed, set_class
from bnnviz_app.learn import languages
from bnnviz_app.polls.late import LateChange
from bnnviz_app.polls.poll import Poll, current
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)


class PollView(JSComponent):
    """Show a question with its choices; an answer goes to the server by a request of its own."""

    content = param.Dict(default={}, doc="What students may know of the question; empty where none is asked.")
    words = param.Dict(default={}, doc="What buttons and sentences say, by language.")
    language = param.String(doc="The code of the page's language; empty: the one that this browser keeps.")
    answers = param.Boolean(doc="Whether the page answers.")

    _esm = script(__file__, "card.js")


class PollCard(PageComponent):
    """Show a poll's question above a page, as long as one is asked."""

    def __init__(self, poll: Poll, language: str, answers: bool) -> None:
        self._poll, self._answers = poll, answers
        self.root = PollView(
            words={code: languages.text(code, languages.POLL)["card"] for code in languages.names()},
            language=language,
            answers=answers,
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[SHEETS["pills"], _STYLES["card"]],
        )
        self._fill()
        self._late = LateChange(pn.state.curdoc, self._fill)
        poll.join(self)

    def refresh(self) -> None:
        """Show the question as it is now."""
        self._late.make()

    def speak(self, language: str) -> None:
        """Take another language."""
        self.root.language = language

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        set_class(self.root, "large", large)

    def people(self, gate: Gate) -> set[str]:
        """Return which students look at it: at a page of one of them, or at one that many look at."""
        session = self._late.session
        if session is None or not self._answers or not session.connection_count:
            return set()
        broadcast = getattr(session, "bnnviz_broadcast", None)
        if broadcast is None:
            return {lobby.person(gate, session)}
        return {lobby.sender(gate, request) for request in broadcast.requests if gate.is_student(request)}

    def _fill(self) -> None:
        told: dict[str, Any] = self._poll.told()
        set_class(self.root, "closed", not told)
        set_changed(self.root, content=told)


def poll_card(language: str = "") -> PollCard | None:
    """Return a card for the page of the present session; None where there is no class."""
    return PollCard(current(), language, not roles.present().keeps) if roles.is_class() else None
