"""What the page is made of, without a browser: when pieces of a message are sent, what the controls and lines say."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from bokeh.document import Document
from bokeh.server.views.ws import WSHandler
from panel.io import document as panel_document
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError

from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz_app import THEME_COOKIE, launch, server, theme
from bnnviz_app.session import Session

linux = pytest.mark.skipif(not hasattr(socket, "TCP_CORK"), reason="only Linux corks a socket")


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a TCP connection on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
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
            server._cork(handler)
            here.sendall(piece)
        assert corked(here)
        there.setblocking(False)
        with pytest.raises(BlockingIOError):
            there.recv(100)
        there.settimeout(2)
        await asyncio.sleep(10 * server._CORKED_S)
        assert not corked(here)
        assert there.recv(100) == b"headerfragmentmetadata"
        # and so again
        server._cork(handler)
        assert corked(here)
        await asyncio.sleep(10 * server._CORKED_S)
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
        server._cork(handler_of(None))
        server._cork(handler_of(here))
        here.close()
        await asyncio.sleep(10 * server._CORKED_S)
        assert problems == []

    asyncio.run(write())


def test_every_socket_of_the_server_sends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple] = []
    monkeypatch.setattr(WSHandler, "open", lambda handler: done.append(("open",)))
    monkeypatch.setattr(WSHandler, "write_message", lambda handler, *args, **kwargs: done.append((args, kwargs)))
    monkeypatch.setattr(server, "_cork", lambda handler: done.append(("cork",)))
    server._send_at_once()
    handler = SimpleNamespace(set_nodelay=lambda value: done.append(("nodelay", value)))
    WSHandler.open(handler)
    assert done == [("open",), ("nodelay", True)]
    WSHandler.write_message(handler, "words", binary=False)
    expected = [("cork",)] if hasattr(socket, "TCP_CORK") else []
    assert done[2:] == [*expected, (("words",), {"binary": False})]


def test_what_is_written_while_the_browser_takes_something_else_is_sent_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panel kept it until the next change of the page, which a page that waits to be answered does not make."""
    sent: list[str] = []

    async def write() -> None:
        taken = asyncio.get_running_loop().create_future()
        monkeypatch.setattr(panel_document, "_dispatch_msgs", panel_document._dispatch_msgs)
        monkeypatch.setattr(panel_document, "dispatch_tornado", lambda connection, msg: sent.append(msg) or [taken])
        server._send_all()
        document = Document()
        protocol = SimpleNamespace(create=lambda kind, events: events[0])
        connection = Mock(_socket=WSHandler.__new__(WSHandler), protocol=protocol)
        panel_document.schedule_write_events(document, [connection], ["first"])
        await asyncio.sleep(0)
        taken.set_result(None)
        panel_document.schedule_write_events(document, [connection], ["second"])
        await asyncio.sleep(0.05)
        assert document not in panel_document._WRITE_BLOCK, "what comes next would wait, too"

    asyncio.run(write())
    assert sent == ["first", "second"]


@pytest.mark.parametrize(("error", "told"), [(WebSocketClosedError(), False), (ValueError("other"), True)])
def test_the_log_tells_what_went_wrong_but_not_that_a_page_has_gone(
    started: list[float], caplog: pytest.LogCaptureFixture, error: Exception, told: bool
) -> None:
    async def serve() -> None:
        server.on_server_loaded(None)
        asyncio.get_running_loop().call_exception_handler({"message": "never retrieved", "exception": error})
        server.on_server_unloaded(None)

    asyncio.run(serve())
    assert ("never retrieved" in caplog.text) == told


# --- how the server starts


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the applications and the options of servers, which are not run."""
    servers: list[tuple[dict[str, Any], dict[str, Any]]] = []

    class Server:
        port, address, prefix, _tornado = 5006, None, "", MagicMock(prefix="")

        def __init__(self, applications: dict[str, Any], **options: Any) -> None:
            servers.append((applications, options))

        def run_until_shutdown(self) -> None:
            pass

    monkeypatch.setattr("bokeh.server.server.Server", Server)
    # The command sets up the process's log, which is pytest's here.
    monkeypatch.setattr("bokeh.command.subcommands.serve.basicConfig", lambda **options: None)
    monkeypatch.setattr("bokeh.command.subcommands.serve.logging", SimpleNamespace(getLogger=lambda name: Mock()))
    monkeypatch.setenv("DASK_DISTRIBUTED__LOGGING__BOKEH", "warning")
    return servers


def test_the_page_is_at_its_route_whatever_its_folder_is_called(launched: list[Any], tmp_path: Path) -> None:
    (tmp_path / "main.py").touch()
    given = list(sys.argv)
    launch.launch(tmp_path, "/app", 5123, "0.0.0.0", secret=None)
    ((applications, options),) = launched
    assert list(applications) == ["/app"]
    assert sys.argv == given
    assert (options["port"], options["address"]) == (5123, "0.0.0.0")
    assert options["unused_session_lifetime_milliseconds"] == launch.SESSION_LIFETIME_MS
    assert options["check_unused_sessions_milliseconds"] == launch.SESSION_CHECK_MS


def test_a_script_that_cannot_be_read_is_a_sentence(launched: list[Any], tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("def")
    with pytest.raises(BnnvizError, match=r"(?s)The dashboard cannot be served: .*Invalid syntax in 'main.py'"):
        launch.launch(tmp_path, "/app", 5123, "127.0.0.1", secret=None)
    assert launched == []


# --- the scripts that go ahead of the page


class Answer:
    """What a page's handler would have written, with what it is asked."""

    def __init__(
        self, theme: str = "", cookie: str = "", prefix: str = "", user: str | None = "somebody", gone: bool = False
    ) -> None:
        self.application, self.current_user = SimpleNamespace(prefix=prefix), user
        self.headers: dict[str, str] = {}
        self.sent: list[str] = []
        self.flushes: list[int] = []
        self._theme, self._cookie, self._gone = theme, cookie, gone

    def get_query_argument(self, name: str, default: str) -> str:
        return self._theme or default

    def get_cookie(self, name: str, default: str) -> str:
        assert name == THEME_COOKIE
        return self._cookie or default

    def set_header(self, name: str, value: str) -> None:
        assert not self.flushes, "a header after the beginning has been sent"
        self.headers[name] = value

    def write(self, text: str) -> None:
        self.sent.append(text)

    async def flush(self) -> None:
        self.flushes.append(len(self.sent))
        if self._gone:
            raise StreamClosedError


PAGE = """
<!DOCTYPE html>
<html lang="en" data-theme-managed="true">
  <head>
    <title>a page</title>
<script src="one.js"></script>
<script src="two.js"></script>
<script src="three.js"></script>
<script>one()</script>
  </head><body></body></html>"""
AHEAD = '<script src="one.js"></script>\n<script src="two.js"></script>\n'


def answered(monkeypatch: pytest.MonkeyPatch, answer: Answer, bundle: Future | None = None) -> str:
    """Return what a browser would get of `PAGE`."""
    ready: Future = Future()
    ready.set_result("widgets.js")

    async def get(handler: Answer) -> None:
        handler.write(PAGE)

    monkeypatch.setattr(server.DocHandler, "get", get)
    monkeypatch.setattr(server, "_scripts", lambda: AHEAD)
    monkeypatch.setattr(server, "ThreadPoolExecutor", lambda *args, **kwargs: Importer(bundle or ready))
    server._send_ahead()
    asyncio.run(server.DocHandler.get(answer))
    return "".join(answer.sent)


class Importer:
    def __init__(self, done: Future) -> None:
        self._done = done

    def submit(self, work: Any) -> Future:
        return self._done

    def shutdown(self, wait: bool) -> None:
        pass


@pytest.mark.parametrize(("theme", "background"), [("", "#f2f4f6"), ("dark", "#10171e")])
def test_scripts_are_sent_before_the_page_is_built(
    monkeypatch: pytest.MonkeyPatch, theme: str, background: str
) -> None:
    answer = Answer(theme)
    page = answered(monkeypatch, answer)
    assert answer.flushes == [1, 2], "the scripts, then the bundle, then what is left"
    assert AHEAD in answer.sent[0] and f"html {{background: {background}}}" in answer.sent[0]
    assert 'importShim("widgets.js")' in answer.sent[1]
    assert answer.headers == {"Content-Type": "text/html; charset=UTF-8", "Cache-Control": "no-store"}
    for once in (
        "<!DOCTYPE html>",
        "<html",
        "<head>",
        "one.js",
        "two.js",
        "three.js",
        "<script>one()</script>",
        "</html>",
    ):
        assert page.count(once) == 1, once
    assert page.index("one.js") < page.index("two.js") < page.index("a page") < page.index("three.js")


def test_a_page_whose_imports_fail_is_built_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: Future = Future()
    failed.set_exception(ImportError("no such package"))
    page = answered(monkeypatch, Answer(), failed)
    assert "a page" in page and "importShim" not in page


def test_a_browser_that_goes_before_its_page_is_built_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a page" in answered(monkeypatch, Answer(gone=True))


@pytest.mark.parametrize("other", [{"prefix": "/lecture"}, {"user": None}])
def test_nothing_is_sent_ahead_of_what_may_be_no_page(monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]) -> None:
    answer = Answer(**other)
    assert answered(monkeypatch, answer) == PAGE
    assert not answer.flushes


def test_the_background_ahead_of_the_page_is_the_pages_own() -> None:
    schemes = theme.material()
    light, dark = (schemes[name]["palette"]["background"]["default"] for name in ("light", "dark"))
    assert server.BACKGROUND == {False: light, True: dark}  # noqa: SIM300


@pytest.mark.parametrize(
    ("asked", "left", "dark"),
    [("", "", False), ("dark", "", True), ("", "dark", True), ("default", "dark", False), ("dark", "default", True)],
)
def test_a_page_opens_in_the_theme_of_its_address_or_else_as_it_was_left(
    monkeypatch: pytest.MonkeyPatch, asked: str, left: str, dark: bool
) -> None:
    arguments = {"theme": [asked.encode()]} if asked else {}
    assert theme.is_dark(arguments, {THEME_COOKIE: left} if left else {}) == dark
    sent = answered(monkeypatch, Answer(theme=asked, cookie=left))
    assert (server.BACKGROUND[True] in sent) == dark


# --- when the workers start


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the moments at which the workers were asked for, with a server that has just been loaded."""
    moments: list[float] = []
    monkeypatch.setattr(server, "_send_at_once", lambda: None)
    monkeypatch.setattr(server, "_send_all", lambda: None)
    monkeypatch.setattr(server, "_send_ahead", lambda: None)
    monkeypatch.setattr(server, "gc", SimpleNamespace(freeze=lambda: None, enable=lambda: None))
    monkeypatch.setattr(server, "_COMES_S", 0.1)
    monkeypatch.setattr(server, "_MOMENT_S", 0.02)
    monkeypatch.setattr(server, "_PAGE_S", 0.5)
    monkeypatch.setattr(server.Backend, "connect", lambda: moments.append(time.monotonic()))
    monkeypatch.setattr(server.pn.state, "cache", {})
    return moments


@pytest.mark.parametrize(("end", "least"), [("painted", 0.2), ("closed", 0.2), ("neither", 0.4)])
def test_workers_start_when_the_first_page_is_painted_or_gone(started: list[float], end: str, least: float) -> None:
    async def visit() -> float:
        server.on_server_loaded(None)
        context = SimpleNamespace(id="first")
        server.on_session_created(context)
        begun = time.monotonic()
        await asyncio.sleep(0.2)
        assert not started
        if end == "painted":
            server.pn.state.cache["loading"].discard(context.id)
        elif end == "closed":
            server.on_session_destroyed(context)
        await asyncio.wrap_future(server.pn.state.cache["backend"])
        return begun

    begun = asyncio.run(visit())
    assert len(started) == 1 and started[0] - begun >= least


def test_workers_that_were_never_started_are_not_waited_for(started: list[float]) -> None:
    async def leave() -> None:
        server.on_server_loaded(None)
        server.on_server_unloaded(None)
        await asyncio.sleep(0.2)

    asyncio.run(leave())
    assert not started


# --- a session whose run cannot be started


class Refusing:
    """A backend on which no run can be prepared, as often as it is tried; or only fails later."""

    def __init__(self, later: bool = False) -> None:
        self.tried: list[bool] = []
        self.later = later

    def devices(self) -> list[str]:
        return ["cpu"]

    def start(self, spec: Spec, play: bool, origin: str | None) -> Any:
        self.tried.append(play)

        async def scene() -> dict[str, Any]:
            if not self.later:
                raise BnnvizError("No such data.", "target.data")
            return {}

        async def stop() -> None:
            pass

        async def frame(want: list[str]) -> None:
            return None

        return SimpleNamespace(
            scene=scene, stop=stop, frame=frame, state="failed", alive=False, playing=False, notice="It has no units."
        )


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that gives a session on a backend, and the list of what its page is told."""

    async def show(self: Session, function: Any, *args: Any) -> None:
        function(*args)

    monkeypatch.setattr(Session, "_show", show)

    def begin(backend: Refusing) -> tuple[Session, list[str]]:
        said: list[str] = []
        screen = SimpleNamespace(
            show_error=lambda error: said.append(error.sentence),
            show_playing=lambda: said.append("playing"),
            show_notice=lambda sentence, failed: said.append(sentence),
            show_devices=lambda names: None,
            show_scene=lambda scene: said.append("scene"),
            show_waiting=lambda waiting: None,
            wanted=lambda turn: set(),
        )
        ready: Future = Future()
        ready.set_result(backend)
        heartbeat = SimpleNamespace(hidden=False, still=False)
        return Session(Spec(target="gaussian", sampler="bps"), ready, screen, heartbeat, Document()), said

    return begin


def test_play_tries_a_run_again_that_could_not_be_started_and_is_no_pause_afterwards(begun: Any) -> None:
    async def visit(backend: Refusing) -> list[str]:
        session, said = begun(backend)
        for _ in range(2):
            session.play()
            with pytest.raises(BnnvizError) as refused:
                await session._start()
            await session._complain(refused.value)
            assert not session.playing and not session._starting
        return said

    backend = Refusing()
    assert asyncio.run(visit(backend)) == ["playing", "No such data."] * 2
    assert backend.tried == [True, True]


def test_why_a_run_failed_is_said_again_when_it_fails_again(begun: Any) -> None:
    async def visit(backend: Refusing) -> list[str]:
        session, said = begun(backend)
        for _ in range(2):
            session.play()
            await session._start()
            await session._tick(session._handle)
            await session._complain(BnnvizError("It has no units.", "sampler"))  # lingers
            said.pop()
        return [each for each in said if each != "playing"]

    assert asyncio.run(visit(Refusing(later=True))) == ["scene", "It has no units.", "scene", "", "It has no units."]


def test_play_is_not_taken_back_by_the_run_before_another_one(begun: Any) -> None:
    async def visit() -> tuple[bool, list[str]]:
        session, said = begun(Refusing(later=True))

        async def frame(want: list[str]) -> None:
            # Somebody chooses another run and plays while the page waits for a frame of this one, which rests.
            session.begin(Spec(target="banana", sampler="bps"))
            session.play()

        session._starting = False
        session._handle = SimpleNamespace(frame=frame, state="running", playing=False, notice=None, waits=False)
        await session._tick(session._handle)
        return session.playing, said

    playing, said = asyncio.run(visit())
    assert playing and "playing" not in said
