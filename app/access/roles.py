"""Define roles: the owner of the server may do everything, students of a class have limits."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import panel as pn
from bokeh.application.application import SessionContext
from tornado.httputil import HTTPServerRequest

from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz_app.access.gate import GATE, Gate
from bnnviz_app.address import Visit

MOST_PAGES = 120  # of a class, playing or not: some 6 MB each
KEPT = "Only the teacher of a class can use recordings."
_ROLE, _PERSON = "role", "person"  # in the token of a session
_COMES_S = 5.0  # within which a browser connects to a page
_HINT = "the class's computer is shared"


@dataclass(frozen=True)
class Role:
    """The limits of a role; None means unlimited."""

    name: str
    keeps: bool = True
    most_upload: int | None = None
    most_dim: int | None = None
    most_chains: int | None = None
    most_draws: int | None = None
    most_numbers: int | None = None
    most_pages: int | None = None

    def upload(self, most: int) -> int:
        """Return the largest size of a file in bytes, at most the given one."""
        return most if self.most_upload is None else min(most, self.most_upload)

    def check(self, spec: Any, origin: str | None = None) -> None:
        """Check whether a spec is within the limits."""
        if origin is not None and not self.keeps:
            raise BnnvizError(KEPT, "recording")
        entries = [spec] if isinstance(spec, Spec) else list(getattr(spec, "entries", ()))
        for entry in entries:
            self._check(entry)
        numbers = sum(entry.chains * max(1, entry.known_dim) for entry in entries)
        _refuse(numbers, self.most_numbers, "chains times dimensions", "chains")

    def _check(self, spec: Spec) -> None:
        _refuse(spec.known_dim, self.most_dim, "dimensions", "hidden" if "hidden" in spec.target_settings else "size")
        _refuse(spec.chains, self.most_chains, "chains", "chains")
        _refuse(spec.draws or 0, self.most_draws, "draws", "draws")
        if not self.keeps and spec.kernel != "eager":
            raise BnnvizError(f"In a class students use the eager kernel: {_HINT}.", "kernel")

    def admit(self, visit: Visit, opening: Any) -> Visit:
        """Return a visit within the limits, with a message on dropped parts."""
        if not self.keeps and visit.flags.pop("recording", None) is not None:
            visit.sentences.append(KEPT)
        try:
            self.check(visit.spec)
        except BnnvizError as error:
            visit.sentences.append(error.message.text)
            visit.spec = opening.checked()
        return visit


OWNER = Role("owner")
STUDENT = Role(
    "student",
    keeps=False,
    most_upload=1_000_000,
    most_dim=5_000,
    most_chains=16,
    most_draws=20_000,
    most_numbers=20_000,
    most_pages=3,
)


def is_class() -> bool:
    """Return whether the server serves a class."""
    gate = pn.state.cache.get(GATE)
    return gate is not None and gate.students is not None


def visitor(request: HTTPServerRequest) -> dict[str, str]:
    """Return role and id of the sender of a request, for the signed token of a session."""
    if not is_class():
        return {}
    gate: Gate = pn.state.cache[GATE]
    role = STUDENT if gate.is_student(request) else OWNER
    return {_ROLE: role.name, _PERSON: gate.person(request)}


def present() -> Role:
    """Return the role of the present session, from its token."""
    if not is_class():
        return OWNER
    context = None if pn.state.curdoc is None else pn.state.curdoc.session_context
    reported = None if context is None else context.token_payload.get(_ROLE)
    return OWNER if reported == OWNER.name else STUDENT


class Pages:
    """Count the open pages of students, by session."""

    def __init__(self) -> None:
        self._open: dict[str, _OpenPage] = {}

    def opened(self, context: SessionContext) -> None:
        """Count a session that is about to be made."""
        reported = context.token_payload
        if reported.get(_ROLE) == STUDENT.name:
            self._open[context.id] = _OpenPage(str(reported.get(_PERSON)), context)

    def closed(self, context: SessionContext) -> None:
        """Count a session no longer."""
        self._open.pop(context.id, None)

    def refusal(self, context: SessionContext) -> str | None:
        """Return why a new page has to wait, or None."""
        mine = self._open.get(context.id)
        if mine is None:
            return None
        others = [page for page in self._open.values() if page is not mine and page.counts]
        if sum(page.person == mine.person for page in others) >= STUDENT.most_pages:
            return f"You have {STUDENT.most_pages} pages of this class open. Close one, and this page opens."
        if len(others) >= MOST_PAGES:
            return f"The class is full: {MOST_PAGES} pages are open. This page opens when another is closed."
        return None


class _OpenPage:
    """The owner of a session's page."""

    def __init__(self, person: str, context: SessionContext) -> None:
        self.person, self._context, self._since = person, context, time.monotonic()

    @property
    def counts(self) -> bool:
        """Whether a browser has the page, or is about to; one that was reloaded stays for a while without a browser."""
        session = self._context.session
        return (session is not None and session.connection_count > 0) or time.monotonic() - self._since < _COMES_S


OPEN_PAGES = Pages()


def _refuse(asked: int, most: int | None, what: str, field: str) -> None:
    if most is not None and asked > most:
        raise BnnvizError(f"In a class a student's run has at most {most:,} {what}, not {asked:,}: {_HINT}.", field)
