"""Open the web socket of a page for a session of this server, and filter its messages."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable
from typing import Any

from bokeh.protocol.exceptions import MessageError, ProtocolError
from bokeh.protocol.message import Message
from bokeh.server.protocol_handler import ProtocolHandler
from bokeh.server.session import ServerSession
from bokeh.util.token import check_token_signature, get_session_id
from panel.io import document as panel_document
from panel.io.server import WSHandler
from tornado.websocket import WebSocketClosedError

from bnnviz_app.access.gate import GATE, Gate
from bnnviz_app.access.messages import MALFORMED, keep_allowed

_CORKED_S = 0.002

log = logging.getLogger(__name__)


class PageSocket(WSHandler):
    """Connect a browser to its page."""

    @property
    def handler(self) -> ProtocolHandler | None:
        """The handler of messages: ours also while the connection opens, never Bokeh's."""
        return self._protocol

    @handler.setter
    def handler(self, made: ProtocolHandler | None) -> None:
        self._protocol = None if made is None else _PageProtocol()

    def check_origin(self, origin: str) -> bool:
        """Ask the gate; tornado accepts any origin that equals the host."""
        gate: Gate = self.settings[GATE]
        return gate.takes_origin(origin, self.request)

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Begin without delaying small packets; a token that is forged or expired ends the connection."""
        try:
            signed = self.application.sign_sessions  # not by `panel serve app`
            if not check_token_signature(self._token or "", self.application.secret_key, signed=signed):
                raise ProtocolError("forged")
            self.set_nodelay(True)
            super().open(*args, **kwargs)
        except (ProtocolError, *MALFORMED) as error:
            log.warning("A socket is closed, since its token is not valid (%s).", str(error)[:100])
            self.close()

    async def _async_open(self, token: str) -> None:
        try:
            await super()._async_open(token)
        except Exception:
            # Bokeh leaves a session that failed pending, and later requests for it would wait forever.
            pending = self.application_context._pending_sessions.pop(get_session_id(token), None)
            if pending is not None and not pending.done():
                pending.set_exception(ProtocolError("The session could not be made."))
                pending.exception()  # marks it as retrieved
            log.exception("A session could not be opened.")
            self.close()

    def on_close(self) -> None:
        """Give up the session: a page that loses its connection is loaded again, with a session of its own."""
        session = None if self.connection is None else self.connection._session
        if session is not None:
            super().on_close()
            session.request_expiration()

    async def _receive(self, fragment: str | bytes) -> Any:
        try:
            return await super()._receive(fragment)
        except (*MALFORMED, MessageError):
            self._protocol_error("a malformed message")
            return None

    async def send_message(self, message: Message[Any]) -> None:
        """Write a message after those that Panel has queued, since it may refer to models that they add."""
        session = None if self.connection is None else self.connection._session
        queues = {} if session is None else panel_document._WRITE_MSGS.get(session.document, {})
        queued = queues.pop(self.connection, [])
        with await self.write_lock.acquire(), contextlib.suppress(WebSocketClosedError):
            for each in (*queued, message):
                for part in (each.header_json, each.metadata_json, each.content_json):
                    await self.write_message(part, locked=False)
                await each.write_buffers(self, locked=False)

    def write_message(self, *args: Any, **kwargs: Any) -> Awaitable[None]:
        """Write a piece of a message; the pieces of one leave together, so that the browser wakes up once."""
        self._cork()
        return super().write_message(*args, **kwargs)

    def _cork(self) -> None:
        stream = None if self.ws_connection is None else self.ws_connection.stream
        if stream is None or getattr(self, "_corked", False) or not hasattr(socket, "TCP_CORK"):
            return

        def uncork() -> None:
            self._corked = False
            with contextlib.suppress(OSError, AttributeError):  # closed in the meantime
                stream.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)

        with contextlib.suppress(OSError, AttributeError):  # a Unix socket, or one that is closed
            stream.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            self._corked = True
            asyncio.get_running_loop().call_later(_CORKED_S, uncork)


class _PageProtocol(ProtocolHandler):
    """Handle a browser's messages."""

    def __init__(self) -> None:
        super().__init__()
        self._handlers |= {"PULL-DOC-REQ": _pull, "PUSH-DOC": _refuse_document, "PATCH-DOC": _patch}


async def _pull(message: Any, connection: Any) -> Any:
    """Write a page as JSON in a thread, so that the frames of others go out meanwhile."""
    session = connection.session

    def reply() -> Any:
        made = connection.protocol.create("PULL-DOC-REPLY", message.header["msgid"], session.document)
        made.content_json  # noqa: B018 - it is written once, when it is first read
        return made

    return await session.with_document_locked(asyncio.to_thread, reply)


async def _patch(message: Any, connection: Any) -> Any:
    """Apply the allowed changes of a message, unless the page has been closed."""
    if connection._session is None:
        return connection.ok(message)
    keep_allowed(connection.session.document, message)
    return await ServerSession.patch(message, connection)


async def _refuse_document(message: Any, connection: Any) -> Any:
    log.warning("A browser sent a document, which is refused.")
    return connection.error(message, "A page is not replaced by its browser.")
