"""Send frames to pages on the worker's own machine: from the thread that makes them straight into a socket.

A call of an actor takes four turns of the worker's event loop, which shares the interpreter with the sampler:
of what a watched run loses, that was a third. Here the loop thread itself reads the question and writes the
answer between two slices. A page that cannot reach the socket, since it is on another machine or on a system
that has none, calls the actor as before.

Frames are pickled, so both ends prove first that they have the key of this run, which the actor tells the page.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import os
import secrets
import selectors
import socket
import struct
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SUFFIX = ".sock"
YOUNG_S = 60.0  # a socket that nobody answers at may still be about to be opened
LONGEST = 1 << 20  # bytes of a question: no page asks so much
_LENGTH = struct.Struct("!I")
_CHUNK = 1 << 16
_PAGE, _WORKER = b"page", b"worker"

log = logging.getLogger(__name__)


class Question(NamedTuple):
    """Ask for a frame: of which run, which parts, and the version that the caller has seen of each of them."""

    run: str
    want: list[str]
    seen: int


class SocketAddress(NamedTuple):
    """Say where a worker listens, and the key that page and worker prove to each other that they have."""

    path: str
    key: bytes


def _proof(key: bytes, who: bytes, nonce: str) -> str:
    return hmac.new(key, who + nonce.encode(), hashlib.sha256).hexdigest()


class Caller:
    """Hold the worker's end of one page's connection; used by the loop thread only."""

    def __init__(self, connection: socket.socket, selector: selectors.BaseSelector, key: bytes) -> None:
        connection.setblocking(False)
        self._connection, self._selector, self._key = connection, selector, key
        self._known = False  # whether it has proved that it has the key
        self._heard, self._unsent = bytearray(), b""
        self._writes = self.closed = False
        selector.register(connection, selectors.EVENT_READ, self)

    def read(self) -> Iterator[Question]:
        """Yield the questions that have come in whole; ValueError where somebody asks who has not the key."""
        try:
            heard = self._connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if not heard:
            self.close()
            return
        self._heard += heard
        while len(self._heard) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._heard)
            if length > LONGEST:
                self.close()
                return
            end = _LENGTH.size + length
            if len(self._heard) < end:
                return
            said = json.loads(bytes(self._heard[_LENGTH.size : end]))
            del self._heard[:end]
            if self._known:
                yield Question(**said)
            else:
                self._greet(**said)

    def _greet(self, nonce: str, proof: str) -> None:
        if not hmac.compare_digest(proof.encode(), _proof(self._key, _PAGE, nonce).encode()):
            raise ValueError("a caller without the key")
        self._known = True
        self.answer(_proof(self._key, _WORKER, nonce).encode())

    def answer(self, data: bytes) -> None:
        """Send an answer: what the socket does not take now goes when it does."""
        if not self.closed:
            self._unsent += _LENGTH.pack(len(data)) + data
            self.write()

    def write(self) -> None:
        """Send on what is not sent."""
        try:
            sent = self._connection.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        self._unsent = self._unsent[sent:]
        writes = bool(self._unsent)
        if writes != self._writes:
            self._writes = writes
            self._selector.modify(self._connection, selectors.EVENT_READ | selectors.EVENT_WRITE * writes, self)

    def close(self) -> None:
        """Hang up."""
        if not self.closed:
            self.closed = True
            self._selector.unregister(self._connection)
            self._connection.close()


class FrameServer:
    """Let a worker's loop thread wait for pages that ask, and for whoever wakes it."""

    def __init__(self, folder: Path) -> None:
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for end in (self._woken, self._waker):
            end.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._listener, self.path = _listening(folder)
        self.key = secrets.token_bytes(32)
        if self._listener is not None:
            self._selector.register(self._listener, selectors.EVENT_READ)

    def wake(self) -> None:
        """End the wait, or the next one; from any thread."""
        # a full buffer wakes as well; closed: nobody waits any more
        with contextlib.suppress(BlockingIOError, OSError):
            self._waker.send(b"!")

    def poll(self, seconds: float | None) -> list[tuple[Caller, Question]]:
        """Wait for at most so long (None: for ever) and return the questions that have come."""
        asked = []
        for key, events in self._selector.select(seconds):
            if key.fileobj is self._woken:
                self._woken.recv(_CHUNK)
            elif key.fileobj is self._listener:
                self._accept()
            else:
                asked += self._attend(key.data, events)
        return asked

    def close(self) -> None:
        """Hang up on everybody and remove the socket."""
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()
        self._waker.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has gone again
            return
        Caller(connection, self._selector, self.key)

    def _attend(self, caller: Caller, events: int) -> list[tuple[Caller, Question]]:
        if events & selectors.EVENT_WRITE:
            caller.write()
        if caller.closed or not events & selectors.EVENT_READ:
            return []
        try:
            return [(caller, question) for question in caller.read()]
        except (ValueError, TypeError, AttributeError, RecursionError):
            log.warning("somebody who is no page has called at %s", self.path)
            caller.close()
            return []


def _listening(folder: Path) -> tuple[socket.socket | None, Path | None]:
    """Return a socket that only this user can call, and its path."""
    if not hasattr(socket, "AF_UNIX"):
        return None, None
    path = folder / f"{os.getpid()}-{uuid.uuid4().hex[:8]}{SUFFIX}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
    except OSError as error:  # a path too long, a disk that cannot be written to
        log.info("pages get their frames from the actor, as there can be no socket at %s: %s", path, error)
        listener.close()
        return None, None
    return listener, path


def sweep(folder: Path) -> None:
    """Remove the sockets of workers that are dead."""
    for path in folder.glob(f"*{SUFFIX}"):
        # another worker on this machine may sweep the same file
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - YOUNG_S and _is_dead(path):
                path.unlink()


def _is_dead(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)
        try:
            caller.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


class FrameConnection:
    """Hold the page's end of the connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes) -> None:
        self._reader, self._writer, self._key = reader, writer, key
        self._nonce: str | None = secrets.token_hex(16)  # of the greeting, while the worker has not answered it
        self._say({"nonce": self._nonce, "proof": _proof(key, _PAGE, self._nonce)})

    @classmethod
    async def to(cls, address: SocketAddress | None) -> FrameConnection | None:
        """Return a connection with a worker on this machine; None where it is on another, or has no socket."""
        if address is None or not hasattr(socket, "AF_UNIX"):
            return None
        try:
            return cls(*await asyncio.open_unix_connection(address.path), address.key)
        except OSError:
            return None

    async def ask(self, question: Question) -> bytes:
        """Return the answer to a question; OSError or EOFError where the worker has gone, or has not the key."""
        self._say(question._asdict())
        if self._nonce is not None:
            await self._recognise(self._nonce)
        return await self._hear()

    async def _recognise(self, nonce: str) -> None:
        proof = await self._hear()
        if not hmac.compare_digest(proof, _proof(self._key, _WORKER, nonce).encode()):
            log.warning("somebody who is no worker answers at the socket of one")
            raise EOFError
        self._nonce = None

    def _say(self, what: dict[str, Any]) -> None:
        data = json.dumps(what).encode()
        self._writer.write(_LENGTH.pack(len(data)) + data)

    async def _hear(self) -> bytes:
        (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        return await self._reader.readexactly(length)

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
