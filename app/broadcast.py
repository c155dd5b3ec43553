"""Show one page to many browsers: each change of it is written once, and the same bytes go to all of them.

They only look: what they send changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from bokeh.document import Document
from bokeh.protocol import Protocol
from bokeh.server.connection import ServerConnection
from bokeh.server.session import ServerSession
from panel.io.document import extra_socket_handlers
from tornado.httputil import HTTPServerRequest

SNAPSHOT_S = 10.0  # for which a page that is written serves those who come
MOST_BEHIND = 4 << 20  # bytes that a browser has not taken: it is let go, and loads the page again
_TEXT, _BYTES = 0x81, 0x82  # a whole message of a web socket (RFC 6455, section 5.2)


_BEFORE: weakref.WeakKeyDictionary[Document, Callable[[], Awaitable[bool]]] = weakref.WeakKeyDictionary()


def before_written(doc: Document, freshen: Callable[[], Awaitable[bool]]) -> None:
    """Have something done each time before a page that many look at is written for those who come."""
    _BEFORE[doc] = freshen


class Broadcast:
    """Stand in a session for all browsers that look at its page."""

    def __init__(self, session: ServerSession) -> None:
        self.protocol = Protocol()
        self._socket = _Socket(self)  # where Panel looks for one
        self._session = session
        self._members: dict[ServerConnection, _Member] = {}
        self._pulling = asyncio.Lock()
        self._snapshot, self._taken = None, 0.0  # the page as it was, written, and when
        self._since: list[bytes] = []  # what has changed from then on
        session.block_expiration()
        session.bnnviz_broadcast = self
        session.subscribe, session.unsubscribe = self._join, self._leave

    @property
    def size(self) -> int:
        """Browsers that look."""
        return len(self._members)

    @property
    def requests(self) -> list[HTTPServerRequest]:
        """The requests by which these browsers have come."""
        return [connection._socket.request for connection in self._members]

    async def reply(self, pull: Callable[..., Any], message: Any, connection: ServerConnection) -> Any:
        """Return the page for a browser; those who come within some seconds get the same one, and what has changed."""
        async with self._pulling:
            freshen = _BEFORE.get(self._session.document)
            changed = freshen is not None and await freshen()
            old = (
                changed or time.monotonic() - self._taken > SNAPSHOT_S or sum(map(len, self._since)) > MOST_BEHIND // 2
            )
            if old or self._snapshot is None:
                self._since = []
                self._snapshot = thinned(await pull(self._session, message, connection))
                self._taken = time.monotonic()
        if connection in self._members:
            self._members[connection].waiting = list(self._since)
        return page_reply(message, self._snapshot)

    def shown(self, connection: ServerConnection) -> None:
        """Note that a browser has the page."""
        if connection in self._members:
            self._members[connection].begin()

    def send(self, message: Any) -> None:
        """Send a change to all."""
        data = written(message)
        self._since.append(data)
        if sum(map(len, self._since)) > MOST_BEHIND:
            self._snapshot, self._since = None, []
        for member in list(self._members.values()):
            member.send(data)

    async def send_patch_document(self, event: Any) -> None:
        """Send a change to all, as Bokeh has it."""
        self.send(self.protocol.create("PATCH-DOC", [event]))

    def _join(self, connection: ServerConnection) -> None:
        self._members[connection] = _Member(connection._socket)
        self._session._subscribed_connections.add(self)

    def _leave(self, connection: ServerConnection) -> None:
        self._members.pop(connection, None)
        if not self._members:
            ServerSession.unsubscribe(self._session, self)


class _Socket:
    """Pass on to a broadcast what Panel sends."""

    def __init__(self, broadcast: Broadcast) -> None:
        self.broadcast = broadcast


def _deliver(connection: Broadcast, events: Sequence[Any] | None = None, msg: Any = None) -> list[Any]:
    if msg is None and events:
        msg = connection.protocol.create("PATCH-DOC", list(events))
    if msg is not None:
        connection.send(msg)
    return []


extra_socket_handlers[_Socket] = _deliver


class _Member:
    """Hold one browser that looks."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self.waiting: list[bytes] | None = None  # for the browser, which is building the page
        self._has_page = False

    def begin(self) -> None:
        """Send what has changed while the browser built the page, and from now on everything at once."""
        waiting, self.waiting, self._has_page = self.waiting, None, True
        for data in waiting or ():
            self._write(data)

    def send(self, data: bytes) -> None:
        """Send a change, or keep it."""
        if self._has_page:
            self._write(data)
        elif self.waiting is not None:
            self.waiting.append(data)
            if sum(map(len, self.waiting)) > MOST_BEHIND:
                self._let_go()

    def _write(self, data: bytes) -> None:
        connection = self._socket.ws_connection
        if connection is None or connection.is_closing():
            return
        if self._socket.write_lock._block._value == 0:  # the pieces of another message are on their way
            asyncio.get_running_loop().call_later(0.005, self._write, data)
            return
        stream = connection.stream
        if len(stream._write_buffer) > MOST_BEHIND:
            self._let_go()
        elif not stream.closed():
            # That it has gone meanwhile its connection hears.
            stream.write(data).add_done_callback(lambda done: done.cancelled() or done.exception())

    def _let_go(self) -> None:
        self._has_page, self.waiting = False, None
        self._socket.close()


def thinned(reply: Any) -> Any:
    """Return an answer that is written already, without what it was written from, which takes ten times as much."""
    text = reply.content_json
    reply.content = {}
    reply._content_json = text
    return reply


def page_reply(message: Any, kept: Any) -> Any:
    """Return the answer to a browser that asks for a page: one that is written already, with another number."""
    reply = type(kept)(kept.create_header(request_id=message.header["msgid"]), {}, {})
    reply._content_json = kept.content_json
    reply.add_buffers(*kept._buffers)
    return reply


def written(message: Any) -> bytes:
    """Return all pieces of a message as a web socket sends them."""
    parts = [message.header_json, message.metadata_json, message.content_json]
    framed = [_framed(part.encode(), _TEXT) for part in parts]
    for buffer in message._buffers:
        framed += [_framed(json.dumps(buffer.ref).encode(), _TEXT), _framed(buffer.to_bytes(), _BYTES)]
    return b"".join(framed)


def _framed(data: bytes, kind: int) -> bytes:
    length = len(data)
    if length < 126:
        head = struct.pack("!BB", kind, length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", kind, 126, length)
    else:
        head = struct.pack("!BBQ", kind, 127, length)
    return head + data


def install() -> None:
    """Have sessions with a broadcast take nothing from browsers, and pages that are written ahead be sent so."""
    if getattr(ServerSession._handle_patch, "of_broadcast", False):
        return
    patch, pull, push = ServerSession._handle_patch, ServerSession._handle_pull, ServerSession._handle_push

    async def handle_patch(session: ServerSession, message: Any, connection: ServerConnection) -> Any:
        broadcast: Broadcast | None = getattr(session, "bnnviz_broadcast", None)
        if broadcast is None:
            return await patch(session, message, connection)
        broadcast.shown(connection)
        return connection.ok(message)

    async def handle_pull(session: ServerSession, message: Any, connection: ServerConnection) -> Any:
        broadcast: Broadcast | None = getattr(session, "bnnviz_broadcast", None)
        if broadcast is not None:
            return await broadcast.reply(pull, message, connection)
        kept, session.bnnviz_page = getattr(session, "bnnviz_page", None), None
        return await pull(session, message, connection) if kept is None else page_reply(message, kept)

    async def handle_push(session: ServerSession, message: Any, connection: ServerConnection) -> Any:
        if getattr(session, "bnnviz_broadcast", None) is None:
            return await push(session, message, connection)
        return connection.ok(message)

    handle_patch.of_broadcast = True
    ServerSession._handle_patch, ServerSession._handle_pull = handle_patch, handle_pull
    ServerSession._handle_push = handle_push
