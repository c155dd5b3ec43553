"""Open the dashboard many times without a browser: tabs that speak its protocol, and acknowledge each frame at once.

Two cores hold some forty of them beside the server, and one browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from bnnviz.benchmarks.web_socket import WebSocket
from bnnviz.errors import BnnvizError

PATIENCE_S = 300.0
_TOKEN = re.compile(r'"token":"([^"]+)"')
_NUMBER, _AT = re.compile(rb'\["number",\[(\d+)\]\]'), re.compile(rb'\["at",\[([0-9.e+]+)\]\]')
# What a page says beside its run: that it waits for its turn, and nothing when it goes on.
_MESSAGE = re.compile(rb'"id":"([^"]+)"\},"attr":"message","new":"([^"]*)"')
_QUEUED = b" in the queue and "
_PAINTED = re.compile(rb'\["painted",\{[^{}]*?"id":"([^"]+)"')
_READY = {"type": "event", "name": "document_ready", "values": {"type": "map"}}
_MOST_CLIENTS = 2000


@dataclass
class Tab:
    """Hold one open page.

    Parameters
    ----------
    url : str
        The page's address.
    token : str
        That lets into the dashboard.

    Attributes
    ----------
    opened_s : float
        From the request of the page to the whole page.
    frames : list of (float, float)
        When each frame came, and how old it was, in seconds.
    told : list of (float, bool)
        When it was told whether its run plays: one that waits for its turn does not.
    """

    url: str
    token: str
    opened_s: float = float("nan")
    frames: list[tuple[float, float]] = field(default_factory=list)
    told: list[tuple[float, bool]] = field(default_factory=list)
    _person: str = field(default_factory=lambda: uuid.uuid4().hex)
    _ids: Iterator[int] = field(default_factory=lambda: count(1))
    _socket: WebSocket | None = None
    _painted: str | None = None
    _teller: bytes | None = None
    _listening: asyncio.Task | None = None
    _closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> None:
        """Ask for the page, connect, and take its document."""
        begun = time.monotonic()
        page_token = await self.fetch()
        await self.connect(page_token)
        self.opened_s = time.monotonic() - begun
        self._listening = asyncio.ensure_future(self._listen())

    async def fetch(self) -> str:
        """Ask for the page alone; return what its socket is opened with."""
        request = HTTPRequest(self.url, headers=self._headers | {"Accept": "text/html"}, request_timeout=PATIENCE_S)
        page = (await _client().fetch(request)).body.decode()
        found = _TOKEN.search(page)
        if found is None:
            raise BnnvizError(f"There is no page at {self.url}.")
        return found[1]

    async def connect(self, page_token: str) -> None:
        """Connect, take the document, and say that it is shown."""
        parts = urlsplit(self.url)
        headers = self._headers | {"Origin": f"{parts.scheme}://{parts.netloc}"}
        connecting = WebSocket.connect(f"ws://{parts.netloc}{parts.path}/ws", headers, ["bokeh", page_token])
        self._socket = await asyncio.wait_for(connecting, PATIENCE_S)
        await self._read("ACK")
        self._say("PULL-DOC-REQ", {})
        document = await self._read("PULL-DOC-REPLY")
        self._painted = _acknowledgement(document)
        self._say("PATCH-DOC", {"events": [{"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": _READY}]})

    def close(self) -> None:
        """Close the page, at once, whatever it is doing."""
        if self._listening is not None:
            self._listening.cancel()
        if self._socket is not None:
            self._socket.close()

    def since(self, moment: float) -> list[tuple[float, float]]:
        """Return the frames since a moment of `time.monotonic`."""
        return [frame for frame in self.frames if frame[0] >= moment]

    @property
    def _headers(self) -> dict[str, str]:
        # Without the cookie by which a class tells its students apart, all would be one.
        return {"Authorization": f"Bearer {self.token}", "Cookie": f"bnnviz-access-{self._port}-person={self._person}"}

    @property
    def _port(self) -> int:
        return urlsplit(self.url).port or 80

    async def _listen(self) -> None:
        with contextlib.suppress(EOFError):
            while True:
                content = await self._read("PATCH-DOC")
                self._hear(content)
                found = _NUMBER.search(content)
                if found is None:
                    continue
                at = _AT.search(content)
                self.frames.append((time.monotonic(), time.time() - float(at[1])) if at else (time.monotonic(), 0.0))
                if self._painted is not None:
                    self._acknowledge(int(found[1]))

    def _hear(self, content: bytes) -> None:
        """Note whether the run waits for its turn, where a message says it."""
        for teller, said in _MESSAGE.findall(content):
            waits = _QUEUED in said
            if waits or teller == self._teller:
                self._teller = teller
                self.told.append((time.monotonic(), not waits))

    def _acknowledge(self, number: int) -> None:
        data = {"type": "map", "entries": [["number", [number]]]}
        change = {"kind": "ModelChanged", "model": {"id": self._painted}, "attr": "data", "new": data}
        with contextlib.suppress(Exception):  # it is closed meanwhile
            self._say("PATCH-DOC", {"events": [change]})

    def _say(self, kind: str, content: dict[str, Any]) -> None:
        header = {"msgid": str(next(self._ids)), "msgtype": kind, "num_buffers": 0}
        for part in (header, {}, content):
            self._socket.send(json.dumps(part))

    async def _read(self, kind: str) -> bytes:
        """Return the content of the next message of a kind; EOFError where the page is closed."""
        while True:
            header = json.loads(await self._socket.receive())
            await self._socket.receive()
            content = await self._socket.receive()
            for _ in range(2 * header.get("num_buffers", 0)):
                await self._socket.receive()
            if header["msgtype"] == kind:
                return content


def _client() -> AsyncHTTPClient:
    return AsyncHTTPClient(max_clients=_MOST_CLIENTS, max_buffer_size=1 << 28, max_body_size=1 << 28)


def _acknowledgement(document: bytes) -> str | None:
    """Return the id of the source by which a page says which frame it has painted.

    It is searched for: to read whole documents would keep this process from the frames of its other tabs.
    """
    found = _PAINTED.search(document)
    return None if found is None else found[1].decode()
