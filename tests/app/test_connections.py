"""Connections of clients that have shown no secret: how many stay, how long, and without files to accept more."""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest
from servers import serving, token_of
from tornado.httpclient import AsyncHTTPClient

from bnnviz_app.access import connections
from bnnviz_app.access.gate import Gate
from bnnviz_app.access.secret import Secret

TOKEN = "a-token-of-this-test"
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def idle(port: int, number: int, first: bytes = b"") -> AsyncIterator[list[Line]]:
    """Open connections that send at most the beginning of a request."""
    lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(number)]
    for _, writer in lines:
        writer.write(first)
    await asyncio.sleep(0.2)
    try:
        yield lines
    finally:
        for _, writer in lines:
            writer.close()


async def is_closed(line: Line, seconds: float) -> bool:
    try:
        return await asyncio.wait_for(line[0].read(1000), seconds) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


async def answer(port: int, token: str = TOKEN, path: str = "app") -> int:
    client = AsyncHTTPClient(force_instance=True)
    how = {"headers": {"Authorization": f"Bearer {token}"}, "request_timeout": 20, "raise_error": False}
    return (await client.fetch(f"http://127.0.0.1:{port}/{path}", **how)).code


@asynccontextmanager
async def serving_strangers() -> AsyncIterator[int]:
    """Serve behind a token, and yield the port."""
    async with serving(lambda document: None, lambda port: Gate.at("127.0.0.1", port, Secret(TOKEN))) as server:
        yield server.port


@contextmanager
def at_most(files: int) -> Iterator[None]:
    """Limit the number of open files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("first", [b"", b"GET /app HTTP/1.1\r\nHost: 127.0"])
async def test_idle_connections_make_room_for_others(first: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "GRACE_S", 0.0)
    async with serving_strangers() as port, idle(port, 1_100, first) as lines:
        assert await is_closed(lines[0], 5)
        assert not await is_closed(lines[-1], 0.1)
        assert await answer(port) == 200


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"POST /login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9\r\n\r\nword",
        b"POST /login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nword\r\n",
    ],
)
async def test_a_request_that_does_not_end_is_not_waited_for(first: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_S", 0.5)
    async with serving_strangers() as port:
        begun = first.replace(b"HOST", f"127.0.0.1:{port}".encode())
        async with idle(port, 1, begun) as (line,):
            assert await is_closed(line, 5)


@pytest.mark.parametrize("first", [b"", b"\x81\xfe\x03\xe8mask"])
async def test_a_socket_that_answers_no_ping_is_closed(first: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_S", 0.5)
    async with serving(lambda document: None) as server:
        opening = (
            f"GET /app/ws HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nOrigin: http://127.0.0.1:{server.port}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a2V5\r\n"
            f"Sec-WebSocket-Protocol: bokeh, {token_of(server)}\r\n\r\n"
        )
        async with asyncio.timeout(10), idle(server.port, 1, opening.encode() + first) as ((reader, writer),):
            assert b"101" in await reader.read(1000)
            while not reader.at_eof():
                writer.write(b"x" if first else b"")  # a byte of the frame now and then
                with suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1000), 0.2)


async def test_a_page_that_was_let_in_keeps_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_STRANGERS", 4)
    monkeypatch.setattr(connections, "GRACE_S", 0.0)
    request = "GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\r\n"
    async with serving_strangers() as port:
        asked = request.format(port, TOKEN).encode()
        async with idle(port, 1, asked) as (line,), idle(port, 10):
            assert b"404" in await line[0].read(1000)
            assert not await is_closed(line, 0.5)


async def test_without_files_the_server_pauses_with_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "PAUSE_S", 0.3)
    caplog.set_level(logging.WARNING)
    async with serving_strangers() as port:
        probe = await asyncio.open_connection("127.0.0.1", port)
        used = probe[1].get_extra_info("socket").fileno()
        async with idle(port, 20):
            # The clients are in this process: they take one half of the files.
            with at_most(used + 60):
                waiting = []
                try:
                    for _ in range(200):
                        waiting.append(await asyncio.open_connection("127.0.0.1", port))
                except OSError:
                    pass
                await asyncio.sleep(0.5)
                for _, writer in waiting:
                    writer.close()
                await asyncio.sleep(0.5)
                assert await answer(port) == 200
        probe[1].close()
    lines = [record for record in caplog.records if record.name == connections.__name__]
    assert 1 <= len(lines) <= 4
    assert not any(record.exc_info for record in caplog.records if record.name != "asyncio")


def test_networks_of_addresses() -> None:
    assert connections.network("192.0.2.7") == connections.network("::ffff:192.0.2.7") == "192.0.2.7"
    assert connections.network("2001:db8::1") == connections.network("2001:db8::2%eth0") == "2001:db8::/64"
    assert connections.network("127.9.8.7") == connections.network("::ffff:127.0.0.2") == connections.network("::1")
    assert connections.network("") == ""
