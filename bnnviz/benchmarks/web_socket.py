"""Speak a web socket (RFC 6455) with little work for each message, so that one process can be sixty browsers."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from bnnviz.errors import BnnvizError

_KEY = "YmVuY2htYXJrIG9mIHRhYnM="  # any 16 bytes: the answer to it is not looked at
_CHUNK = 1 << 20
_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA
_FINAL, _MASKED = 0x80, 0x80
_NO_MASK = b"\0\0\0\0"  # a mask that changes nothing


class WebSocket:
    """Hold one connection; made by `WebSocket.connect`.

    Parameters
    ----------
    reader : asyncio.StreamReader
    writer : asyncio.StreamWriter

    Attributes
    ----------
    received : int
        Bytes so far.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._data, self._messages, self._pieces = bytearray(), deque[bytes](), bytearray()
        self.received = 0

    @classmethod
    async def connect(cls, url: str, headers: Mapping[str, str], protocols: Sequence[str]) -> WebSocket:
        """Connect to an address such as ``ws://127.0.0.1:5006/app/ws``.

        Raises
        ------
        BnnvizError
            If the server answers otherwise.
        """
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
        lines = {"Host": parts.netloc, "Upgrade": "websocket", "Connection": "Upgrade"}
        lines |= {"Sec-WebSocket-Key": _KEY, "Sec-WebSocket-Version": "13"}
        lines |= {"Sec-WebSocket-Protocol": ", ".join(protocols), **headers}
        asked = f"GET {parts.path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(asked.encode() + b"\r\n")
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in answer.split(b"\r\n", 1)[0]:
            writer.close()
            raise BnnvizError(f"There is no web socket at {url} ({answer[:60].decode(errors='replace')}).")
        return cls(reader, writer)

    def send(self, text: str) -> None:
        """Send a message."""
        self._write(_TEXT, text.encode())

    async def receive(self) -> bytes:
        """Return the next message.

        Raises
        ------
        EOFError
            If the connection is closed.
        """
        while not self._messages:
            chunk = await self._reader.read(_CHUNK)
            if not chunk:
                raise EOFError
            self.received += len(chunk)
            self._data += chunk
            self._take_frames()
        return self._messages.popleft()

    def close(self) -> None:
        """Close it, at once."""
        self._writer.close()

    def _take_frames(self) -> None:
        data, at = self._data, 0
        while (found := _frame(data, at)) is not None:
            first, begin, at = found
            kind, payload = first & 0x0F, bytes(data[begin:at])
            if kind == _PING:
                self._write(_PONG, payload)
            elif kind == _CLOSE:
                self._reader.feed_eof()
            elif kind != _PONG:
                self._pieces += payload
                if first & _FINAL:
                    self._messages.append(bytes(self._pieces))
                    self._pieces.clear()
        del data[:at]

    def _write(self, kind: int, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", _FINAL | kind, _MASKED | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", _FINAL | kind, _MASKED | 126, size)
        else:
            head = struct.pack("!BBQ", _FINAL | kind, _MASKED | 127, size)
        self._writer.write(head + _NO_MASK + payload)


def _frame(data: bytearray, at: int) -> tuple[int, int, int] | None:
    """Return the first byte of a frame, and where its payload begins and ends; None where it is not whole yet."""
    if len(data) < at + 2:
        return None
    size, begin = data[at + 1] & 0x7F, at + 2
    if size > 125:
        begin += 2 if size == 126 else 8
        if len(data) < begin:
            return None
        size = int.from_bytes(data[at + 2 : begin], "big")
    return (data[at], begin, begin + size) if len(data) >= begin + size else None
