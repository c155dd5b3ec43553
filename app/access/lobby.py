"""Count the pages of a class, and say why another one has to wait."""

from __future__ import annotations

from typing import Any

from bokeh.server.tornado import BokehTornado
from tornado.httputil import HTTPServerRequest

from bnnviz_app.access.gate import Gate
from bnnviz_app.access.roles import STUDENT

MOST_PAGES = 120  # of a class, playing or not: some 6 MB each


def why_full(application: BokehTornado, gate: Gate, request: HTTPServerRequest) -> str | None:
    """Return why a student's page is not opened now; None where it is."""
    people = [person(gate, session) for context in application._applications.values() for session in _seen(context)]
    who = sender(gate, request)
    if people.count(who) >= STUDENT.most_pages:
        return (
            f"You have {people.count(who)} pages of this class open, which is as many as there may be: close one, and"
            " this one opens."
        )
    if len(people) >= MOST_PAGES:
        return (
            f"The class is full: {len(people)} pages are open. This one opens as soon as another is closed; you can"
            " follow the teacher's run meanwhile."
        )
    return None


def person(gate: Gate, session: Any) -> str:
    """Return whose page a session is."""
    request = session.document.session_context.request
    return request.cookies.get(gate.person) or getattr(request, "remote_ip", "")


def sender(gate: Gate, request: HTTPServerRequest) -> str:
    """Return who sends a request; whose browser keeps nothing is told by its address."""
    own = request.cookies.get(gate.person)
    return own.value if own is not None else request.remote_ip


def _seen(context: Any) -> list[Any]:
    """Return the pages that a browser has: one that is loaded again is closed before."""
    return [session for session in context.sessions if session.connection_count and not session.destroyed]
