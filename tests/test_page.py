"""What the page is made of, without a browser: when pieces of a message are sent, what the controls and lines say."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from bokeh.server.views.ws import WSHandler

from app import server_lifecycle

linux = pytest.mark.skipif(not hasattr(socket, "TCP_CORK"), reason="only Linux corks a socket")


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a TCP connection on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = socket.create_connection(server.getsockname())
        there, _ = server.accept()
    with here, there:
        yield here, there


def handler_of(connection: socket.socket | None) -> Any:
    """Return what `_cork` needs of a websocket's handler; None: it is closed."""
    ends = None if connection is None else SimpleNamespace(stream=SimpleNamespace(socket=connection))
    return SimpleNamespace(ws_connection=ends)


def corked(connection: socket.socket) -> bool:
    return bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK))


@linux
def test_pieces_written_together_are_sent_together_a_moment_later(line: tuple[socket.socket, socket.socket]) -> None:
    here, there = line
    there.settimeout(2)

    async def write() -> None:
        handler = handler_of(here)
        for piece in (b"header", b"fragment", b"metadata"):
            server_lifecycle._cork(handler)
            here.sendall(piece)
        assert corked(here)
        there.setblocking(False)
        with pytest.raises(BlockingIOError):
            there.recv(100)
        there.settimeout(2)
        await asyncio.sleep(10 * server_lifecycle._CORKED_S)
        assert not corked(here)
        assert there.recv(100) == b"headerfragmentmetadata"
        # and so again
        server_lifecycle._cork(handler)
        assert corked(here)
        await asyncio.sleep(10 * server_lifecycle._CORKED_S)
        assert not corked(here)

    asyncio.run(write())


@linux
def test_a_page_that_goes_while_its_message_is_held_back_harms_nothing(
    line: tuple[socket.socket, socket.socket],
) -> None:
    here, _ = line

    async def write() -> None:
        problems: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        server_lifecycle._cork(handler_of(None))
        server_lifecycle._cork(handler_of(here))
        here.close()
        await asyncio.sleep(10 * server_lifecycle._CORKED_S)
        assert problems == []

    asyncio.run(write())


def test_every_socket_of_the_server_sends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple] = []
    monkeypatch.setattr(WSHandler, "open", lambda handler: done.append(("open",)))
    monkeypatch.setattr(WSHandler, "write_message", lambda handler, *args, **kwargs: done.append((args, kwargs)))
    monkeypatch.setattr(server_lifecycle, "_cork", lambda handler: done.append(("cork",)))
    server_lifecycle._send_at_once()
    handler = SimpleNamespace(set_nodelay=lambda value: done.append(("nodelay", value)))
    WSHandler.open(handler)
    assert done == [("open",), ("nodelay", True)]
    WSHandler.write_message(handler, "words", binary=False)
    expected = [("cork",)] if hasattr(socket, "TCP_CORK") else []
    assert done[2:] == [*expected, (("words",), {"binary": False})]


# --- when the workers start


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the moments at which the workers were asked for, with a server that has just been loaded."""
    moments: list[float] = []
    monkeypatch.setattr(server_lifecycle, "_send_at_once", lambda: None)
    monkeypatch.setattr(server_lifecycle, "gc", SimpleNamespace(freeze=lambda: None, enable=lambda: None))
    monkeypatch.setattr(server_lifecycle, "_COMES_S", 0.1)
    monkeypatch.setattr(server_lifecycle, "_MOMENT_S", 0.02)
    monkeypatch.setattr(server_lifecycle, "_PAGE_S", 0.5)
    monkeypatch.setattr(server_lifecycle.Backend, "connect", lambda: moments.append(time.monotonic()))
    monkeypatch.setattr(server_lifecycle.pn.state, "cache", {})
    return moments


@pytest.mark.parametrize(("end", "least"), [("painted", 0.2), ("closed", 0.2), ("neither", 0.4)])
def test_workers_start_when_the_first_page_is_painted_or_gone(started: list[float], end: str, least: float) -> None:
    async def visit() -> float:
        server_lifecycle.on_server_loaded(None)
        context = SimpleNamespace(id="first")
        server_lifecycle.on_session_created(context)
        begun = time.monotonic()
        await asyncio.sleep(0.2)
        assert not started
        if end == "painted":
            server_lifecycle.pn.state.cache["loading"].discard(context.id)
        elif end == "closed":
            server_lifecycle.on_session_destroyed(context)
        await asyncio.wrap_future(server_lifecycle.pn.state.cache["backend"])
        return begun

    begun = asyncio.run(visit())
    assert len(started) == 1 and started[0] - begun >= least


def test_workers_that_were_never_started_are_not_waited_for(started: list[float]) -> None:
    async def leave() -> None:
        server_lifecycle.on_server_loaded(None)
        server_lifecycle.on_server_unloaded(None)
        await asyncio.sleep(0.2)

    asyncio.run(leave())
    assert not started
