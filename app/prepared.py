"""Keep pages for a class that are built already, and the one page that all who follow look at."""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

import panel as pn
import panel.io.server
from bokeh.document import Document
from bokeh.model import Model
from bokeh.protocol import Protocol
from bokeh.server.contexts import ApplicationContext, _RequestProxy
from bokeh.server.session import ServerSession, current_time
from bokeh.server.tornado import BokehTornado
from bokeh.util.token import generate_jwt_token, generate_session_id
from panel.io.resources import LOCAL_DIST, patch_model_css
from panel.io.server import DocHandler
from panel.io.state import state
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from bnnviz_app import LANGUAGE_COOKIE, THEME_COOKIE, broadcast
from bnnviz_app.access.gate import Gate
from bnnviz_app.address import is_on
from bnnviz_app.learn import languages
from bnnviz_app.memory import COLLECTOR
from bnnviz_app.pages import FIRST, OF_CLASS
from bnnviz_app.steps import AHEAD
from bnnviz_app.theme import is_dark

SHELF = "shelf"  # under this name the server keeps it
MOST = 24  # pages
PATIENCE_S = 10.0  # with pages that others wait for, before the next one is built ahead
REST_S = 0.3  # between two pages that are built ahead: who comes meanwhile has the server first
_FOLLOW = next(iter(OF_CLASS))

# Who asks for a page that is written for nobody in particular.
_ANYBODY = SimpleNamespace(header={"msgid": "0"}, protocol=Protocol())

_SHARED: weakref.WeakSet[Document] = weakref.WeakSet()  # pages that many look at

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _FollowedLook:
    """Say how the page that many look at is; who asks for the same look at the same page."""

    theme: str
    lang: str
    projector: str

    @classmethod
    def of(cls, asked: Mapping[str, str], dark: bool, language: str) -> _FollowedLook:
        """Return the look that an address asks for, or else the browser's theme, in the language that it has."""
        theme = "dark" if dark else "default" if "theme" in asked else ""
        projector = "1" if is_on(asked, "projector") else ""
        return cls(theme, languages.found(language) or "", projector)

    @property
    def flags(self) -> dict[str, str]:
        """What an address says of it."""
        return {name: text for name, text in asdict(self).items() if text}


class Shelf:
    """Hold pages of students that nobody has opened yet."""

    def __init__(self, application: BokehTornado, gate: Gate, route: str) -> None:
        self._application, self._gate, self._route = application, gate, route
        self._ready: list[ServerSession] = []
        self._wanted = asyncio.Event()
        self._followed: dict[_FollowedLook, asyncio.Future] = {}
        self._filling: asyncio.Task | None = None

    @property
    def size(self) -> int:
        """Pages that are ready."""
        return len(self._ready)

    def begin(self) -> None:
        """Build pages ahead, from now on."""
        self._filling = asyncio.ensure_future(self._fill())

    async def session(self, handler: DocHandler) -> ServerSession | None:
        """Return the session of a page that is built already; None where the page that is asked for is another."""
        arguments = handler.request.arguments
        asked = {name: values[0].decode(errors="replace") for name, values in arguments.items()}
        dark = is_dark(arguments, {THEME_COOKIE: handler.get_cookie(THEME_COOKIE, "")})
        if asked.pop("page", FIRST) == _FOLLOW:
            kept = {LANGUAGE_COOKIE: handler.get_cookie(LANGUAGE_COOKIE, "")}
            return await self._follow(_FollowedLook.of(asked, dark, languages.asked(arguments, kept)))
        # What else it may have of other pages the page takes as it is handed over.
        if asked.keys() - {"theme", "lang"} or dark or not self._gate.is_student(handler.request) or not self._ready:
            return None
        if "page" in handler.request.arguments and handler.get_argument("page") != FIRST:
            return None
        COLLECTOR.opened()
        self._wanted.set()
        return self._handed_over(self._ready.pop(0), handler)

    def _handed_over(self, session: ServerSession, handler: DocHandler) -> ServerSession:
        """Make a page that was built for nobody the page of who asks for it."""
        payload = handler._generate_token_payload()
        session._token = self._token(session.id, payload)
        given = {name: payload[name] for name in ("arguments", "cookies", "headers")}
        session.document.session_context._request = _RequestProxy(handler.request, **given)
        session._last_unsubscribe_time = current_time()
        session.unblock_expiration()
        return session

    async def _follow(self, look: _FollowedLook) -> ServerSession:
        if look not in self._followed:
            self._followed[look] = asyncio.ensure_future(self._followed_page(look))
        session = await asyncio.shield(self._followed[look])
        session._token = self._token(session.id, {"headers": {}, "cookies": {}, "arguments": {}})
        return session

    async def _followed_page(self, look: _FollowedLook) -> ServerSession:
        asked = {"page": _FOLLOW, **look.flags}
        session = await self._built({name: [text.encode()] for name, text in asked.items()})
        await session.with_document_locked(_with_own_styles, session)
        _SHARED.add(session.document)
        broadcast.Broadcast(session)
        state._on_load(session.document)
        return session

    async def _fill(self) -> None:
        AHEAD.set(True)
        while True:
            while len(self._ready) < MOST:
                await _others_are_painted()
                try:
                    session = await self._built({})
                    await session.with_document_locked(_with_own_styles, session)
                    session.bnnviz_page = broadcast.thinned(await session._handle_pull(_ANYBODY, _ANYBODY))
                except Exception:
                    log.exception("a page could not be built ahead")
                    return
                session.block_expiration()
                self._ready.append(session)
                await asyncio.sleep(REST_S)
            self._wanted.clear()
            await self._wanted.wait()

    async def _built(self, arguments: dict[str, list[bytes]]) -> ServerSession:
        """Build a page of a student."""
        context: ApplicationContext = self._application._applications[self._route]
        line = RequestStartLine("GET", self._application.prefix + self._route, "HTTP/1.1")
        request = HTTPServerRequest(start_line=line, headers=HTTPHeaders({"Host": "localhost"}))
        cookies = {self._gate.cookie: self._gate.students.cookie}
        name = generate_session_id(secret_key=self._application.secret_key, signed=self._application.sign_sessions)
        token = self._token(name, {"headers": {}, "cookies": cookies, "arguments": arguments})
        session = await context.create_session_if_needed(name, request, token)
        pn.state.cache["loading"].discard(name)
        return session

    def _token(self, name: str, payload: dict[str, Any]) -> str:
        application = self._application
        return generate_jwt_token(
            name,
            secret_key=application.secret_key,
            signed=application.sign_sessions,
            expiration=application.session_token_expiration,
            extra_payload=payload,
        )


async def _others_are_painted() -> None:
    """Wait until no browser waits for its page, but not for ever: one may have gone."""
    until = time.monotonic() + PATIENCE_S
    while pn.state.cache["loading"] and time.monotonic() < until:
        await asyncio.sleep(REST_S)


def _with_own_styles(session: ServerSession) -> None:
    """Have a page take its style sheets from this server, as Panel does where a page is asked for."""
    for root in session.document.roots:
        patch_model_css(root, dist_url=LOCAL_DIST)


def install() -> None:
    """Have the server hand out what is on its shelf, where it has one."""
    if getattr(DocHandler.get_session, "of_shelf", False):
        return
    get_session = DocHandler.get_session

    async def get_prepared(handler: DocHandler) -> ServerSession:
        shelf: Shelf | None = pn.state.cache.get(SHELF)
        session = None if shelf is None else await shelf.session(handler)
        return await get_session(handler) if session is None else session

    get_prepared.of_shelf = True
    DocHandler.get_session = get_prepared
    patch = panel.io.server.patch_model_css

    def patch_own(root: Model, dist_url: str) -> None:
        # It holds back what the page sends, and as two browsers come at a time one of them would never let it go.
        if root.document not in _SHARED:
            patch(root, dist_url=dist_url)

    panel.io.server.patch_model_css = patch_own
