"""What a browser may send: messages that no control makes change nothing, and leave no traceback."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import panel as pn
import panel_material_ui as pmui
import pytest
from bokeh.document import Document
from bokeh.models import ColumnDataSource, Label
from bokeh.plotting import figure
from bokeh.server.server import Server
from bokeh.util.token import generate_jwt_token, generate_session_id
from panel.io.document import schedule_write_events
from servers import serving, token_of
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from bnnviz.figures.live.pointer import Pointer, read_message
from bnnviz_app.access.messages import MOST_UNPACKED
from bnnviz_app.components.cards.image_wall import ImageWall
from bnnviz_app.components.controls.image_input import ImageInput
from bnnviz_app.heartbeat import Heartbeat

JUNK: list[Any] = [None, True, -1, 10**30, 1e308, "x" * 9000, "\ud800", [], [[1]], {}, {"a": 1}, {"id": "1001"}]
TYPED: list[Any] = [
    {"type": "object", "id": "made", "name": "CustomJS", "attributes": {"code": "alert(1)"}},
    {"type": "ref", "id": "1001"},
    {"type": "number", "value": "nan"},
    {"type": "number", "value": "what"},
    {"type": "symbol", "name": "boom"},
    {"type": "bytes", "data": "not packed"},
    {"type": "bytes", "data": {"id": "nowhere"}},
    {"type": "slice", "start": 0, "stop": 1, "step": 0},
    {"type": "ndarray", "array": ["a"], "dtype": "S1000000000", "shape": [1], "order": "little"},
    {"type": "ndarray", "array": {"type": "bytes", "data": "eA=="}, "dtype": "object", "shape": [1], "order": "little"},
    {"type": "ndarray", "array": [1], "dtype": "float64", "shape": [10**9, 10**9], "order": "little"},
    {"type": "map", "entries": [[1]]},
    {"type": "nothing"},
]


class Page:
    """Controls of each kind that pages have, as one session has them."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.whole = pmui.IntSlider(label="whole", start=0, end=10, value=3)
        self.number = pmui.FloatSlider(label="number", start=0.0, end=1.0, value=0.5)
        self.choice = pmui.Select(label="choice", options={"one": 1, "two": 2}, value=1)
        self.group = pmui.RadioButtonGroup(options=["a", "b"], value="a")
        self.text = pmui.TextInput(label="text", value="words")
        self.box = pmui.Checkbox(label="box", value=False)
        self.off = pmui.IntSlider(label="off", start=0, end=10, value=3, disabled=True)
        self.button = pmui.Button(label="button", on_click=lambda event: self.received.append("button"))
        self.dead = pmui.Button(label="dead", disabled=True, on_click=lambda event: self.received.append("dead"))
        self.wall = ImageWall(tiles=[{"index": 4}])
        self.image = ImageInput()
        self.heartbeat = Heartbeat(self.received.append)
        self.plot = figure(width=200, height=200, x_range=(0, 1), y_range=(0, 1))
        self.silent = ColumnDataSource({"x": [1.0]})
        self.plot.scatter("x", "x", source=self.silent)
        self.fitted = figure(width=200, height=200)  # to its data
        self.pointer = Pointer(self.plot)
        self.pointer.listen(self.received.append)
        self.controls = [self.whole, self.number, self.choice, self.group, self.text, self.box, self.off, self.button]
        self.controls += [self.dead, self.wall, self.image]
        self.root = pn.Column(*self.controls, self.heartbeat.root, pn.pane.Bokeh(self.plot), pn.pane.Bokeh(self.fitted))

    def model(self, control: Any) -> Any:
        """Return the model whose properties a control's browser changes."""
        ((model, _),) = control._models.values()
        return model.data

    def values(self) -> list[Any]:
        """Return what of it a message might change."""
        own = [{name: str(value) for name, value in control.param.values().items()} for control in self.controls]
        models = [(m.id, {k: repr(v) for k, v in m.properties_with_values().items()}) for m in self.document.models]
        return [own, sorted(models), list(self.received), self.document.title, len(self.document.roots)]

    def build(self, document: Document) -> None:
        self.document = document
        self.root.server_doc(document)


class Browser:
    """Speak with a server as a browser's page does."""

    def __init__(self, line: Any) -> None:
        self._line, self._number = line, 0

    async def send(self, content: Any, kind: str = "PATCH-DOC") -> str:
        """Send a message, and return what kind of message answers it."""
        self._number += 1
        frames = ({"msgid": f"m{self._number}", "msgtype": kind}, {}, content)
        for frame in frames:
            await self._line.write_message(frame if isinstance(frame, str) else json.dumps(frame))
        return await self.answer(f"m{self._number}")

    async def answer(self, requested: str) -> str:
        while True:
            text = await asyncio.wait_for(self._line.read_message(), 20)
            if text is None:
                return "closed"
            if not isinstance(text, str) or not text.startswith("{"):
                continue
            header = json.loads(text)
            if header.get("reqid") == requested:
                return header["msgtype"]

    async def text_with(self, words: str) -> str:
        """Return the first text with these words that the server sends within three seconds; "" without one."""
        with suppress(TimeoutError):
            while text := await asyncio.wait_for(self._line.read_message(), 3):
                if isinstance(text, str) and words in text:
                    return text
        return ""

    async def is_greeted(self) -> None:
        """Wait until the server has the page ready, as a browser does before it asks for it."""
        while True:
            text = await asyncio.wait_for(self._line.read_message(), 20)
            if isinstance(text, str) and json.loads(text or "{}").get("msgtype") == "ACK":
                return

    async def say_raw(self, frames: list[str | bytes]) -> None:
        for frame in frames:
            await self._line.write_message(frame, binary=isinstance(frame, bytes))

    async def ends(self) -> bool:
        """Tell whether the server ends the connection."""
        while True:
            try:
                if await asyncio.wait_for(self._line.read_message(), 3) is None:
                    return True
            except TimeoutError:
                return False

    async def change(self, model: Any, attr: str, new: Any) -> str:
        return await self.send({"events": [changed(model, attr, new)]})


class Served:
    """A server, and the pages that it has built."""

    def __init__(self, server: Server, pages: list[Page]) -> None:
        self._server, self.pages = server, pages

    async def browser(self) -> tuple[Browser, Page]:
        browser = Browser(await self.line(token_of(self._server)))
        await browser.is_greeted()
        assert await browser.send({}, "PULL-DOC-REQ") == "PULL-DOC-REPLY"
        return browser, self.pages[-1]

    async def line(self, token: str) -> Any:
        request = HTTPRequest(f"ws://127.0.0.1:{self._server.port}/app/ws")
        return await websocket_connect(request, subprotocols=["bokeh", token])


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    pages: list[Page] = []

    def build(document: Document) -> None:
        pages.append(Page())
        pages[-1].build(document)

    async with serving(build) as server:
        yield Served(server, pages)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What is logged, in which there may be no traceback."""
    caplog.set_level(logging.WARNING)
    yield caplog
    raised = [record for record in caplog.get_records("call") if record.exc_info]
    traced = [each.getMessage()[:300] for each in raised if each.exc_info[0] is not asyncio.CancelledError]
    assert not traced, traced


def changed(model: Any, attr: str, new: Any) -> dict[str, Any]:
    """Return what a browser says when a property of a model changes."""
    return {"kind": "ModelChanged", "model": {"id": model.id}, "attr": attr, "new": new}


def press(control: Any) -> dict[str, Any]:
    """Return what a browser says when a button is pressed."""
    data = {"type": "map", "entries": [["type", "click"]]}
    values = [["model", {"id": model_of(control).id}], ["node", "click"], ["data", data]]
    statement = {"type": "event", "name": "dom_event", "values": {"type": "map", "entries": values}}
    return {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": statement}


def model_of(control: Any) -> Any:
    """Return the model of a control, which its browser's events name."""
    return next(iter(control._models.values()))[0]


def forged(page: Page, others: Page) -> Iterator[dict[str, Any]]:
    """Yield events that no control makes."""

    def statement(name: str, **values: Any) -> dict[str, Any]:
        data = {"type": "event", "name": name, "values": {"type": "map", "entries": list(map(list, values.items()))}}
        return {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": data}

    slider, choice, text = page.model(page.whole), page.model(page.choice), page.model(page.text)
    for value in [*JUNK, *TYPED, 11, -1, 2.5, "5"]:
        yield changed(slider, "value", value)
        yield changed(choice, "value", value)
        yield changed(page.model(page.wall), "chosen", {"a": value})
        yield changed(page.model(page.wall), "tiles", [value])
    for value in [*JUNK[3:], *TYPED, 2, 400, -400.5]:
        yield changed(page.model(page.number), "value", value)
        yield changed(page.model(page.image), "angle", value if value != 2 else 181)
    settings = {"start": -5, "end": 99, "disabled": True, "label": "mine", "visible": False, "no": 1}
    for attr, value in settings.items():
        yield changed(slider, attr, value)
    yield changed(page.model(page.off), "value", 4)
    yield changed(page.model(page.off), "disabled", False)
    yield changed(choice, "options", ["three"])
    yield changed(page.model(page.group), "value", "c")
    yield changed(page.model(page.group), "options", ["c"])
    yield changed(text, "value", "x" * 100_000)
    yield changed(text, "stylesheets", ["* {display: none}"])
    yield changed(page.model(page.box), "value", "yes")
    yield changed(page.model(page.wall), "tiles", [{"index": 1}])
    yield changed(page.plot, "width", 9)
    yield changed(page.plot, "tags", [])
    yield changed(page.plot.x_range, "bounds", [0, 1])
    yield changed(page.plot.x_range, "start", {"type": "number", "value": "nan"})
    yield changed(page.silent, "data", {"x": [9.0]})
    yield changed(page.document.roots[0], "children", [])
    yield changed(others.model(others.whole), "value", 7)  # of another session
    yield changed(others.plot.x_range, "start", 0.5)
    for kind in ("RootAdded", "RootRemoved"):
        yield {"kind": kind, "model": {"id": page.document.roots[0].id}}
    yield {"kind": "RootAdded", "model": TYPED[0]}
    yield {"kind": "TitleChanged", "title": "mine"}
    yield {
        "kind": "ColumnsStreamed",
        "model": {"id": page.silent.id},
        "attr": "data",
        "data": {"x": [1]},
        "rollover": 1,
    }
    yield {"kind": "ColumnsPatched", "model": {"id": page.silent.id}, "attr": "data", "patches": {"x": [[0, 5.0]]}}
    yield {"kind": "MessageSent", "msg_type": "anything", "msg_data": 1}
    yield {"kind": "nothing"}
    yield {"kind": ["ModelChanged"]}
    yield {}
    yield {"kind": "ModelChanged"}
    yield {"kind": "ModelChanged", "model": slider.id, "attr": "value", "new": 4}
    yield {"kind": "ModelChanged", "model": {"id": [slider.id]}, "attr": "value", "new": 4}
    yield {"kind": "ModelChanged", "model": {"id": slider.id}, "attr": ["value"], "new": 4}
    yield {"kind": "ModelChanged", "model": {"id": slider.id}, "attr": "value", "new": 4, "setter": 1}
    yield statement("connection_lost")
    yield statement("nothing", model={"id": model_of(page.button).id})
    yield statement("tap", model={"id": page.plot.id}, sx=1, sy=1, x=1, y=1)
    yield statement("dom_event", model={"id": model_of(page.dead).id}, node="click", data={})
    yield statement("dom_event", model={"id": model_of(others.button).id}, node="click", data={})
    yield statement("data_event", model={"id": "p9999"}, data={})
    yield statement("button_click", model=3)
    yield statement("data_event", bogus=1)
    yield {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": "text"}
    yield {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": {"type": "event", "name": ["a"], "values": {}}}


async def test_forged_messages_change_nothing(log: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        other, others = await server.browser()
        browser, page = await server.browser()
        assert page is not others
        before, before_others = page.values(), others.values()
        events = list(forged(page, others))
        assert len(events) >= 200
        for event in events:
            assert await browser.send({"events": [event]}) in ("OK", "ERROR"), event
            await asyncio.sleep(0)
        await asyncio.sleep(0.3)
        assert page.values() == before
        assert others.values() == before_others
        assert await other.change(others.model(others.whole), "value", 8) == "OK"
        assert await browser.change(page.model(page.whole), "value", 6) == "OK"
        await asyncio.sleep(0.3)
        assert (others.whole.value, page.whole.value) == (8, 6)
    assert sum("refused" in record.getMessage() for record in log.records) >= 180


async def test_what_is_right_in_a_message_goes_on_beside_what_is_not(log: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        browser, page = await server.browser()

        said = [json.dumps({"do": "add", "x": 1, "y": 2, "n": 1}), "{", '{"do": "add", "x": "1"}']
        values = [(page.whole, 99), (page.whole, 9), (page.choice, "two"), (page.text, 4)]
        values += [(page.box, True), (page.group, "b"), (page.number, 0.25)]
        events = [
            *(changed(page.model(control), "value", value) for control, value in values),
            press(page.button),
            changed(page.pointer._messages, "data", {"type": "map", "entries": [["statement", said]]}),
            changed(page.plot, "inner_width", 180),
            changed(page.plot.x_range, "start", 0.2),
            changed(page.fitted.y_range, "end", 0.7),
        ]
        assert await browser.send({"events": events}) == "OK"
        await asyncio.sleep(0.3)
        controls = (page.whole, page.choice, page.text, page.box, page.group, page.number)
        assert [control.value for control in controls] == [9, 2, "words", True, "b", 0.25]
        assert {"do": "add", "x": 1, "y": 2, "n": 1} in page.received
        assert "button" in page.received
        assert len(page.received) == 2
        assert (page.plot.inner_width, page.plot.x_range.start, page.fitted.y_range.end) == (180, 0.2, 0.7)


@pytest.mark.parametrize("kind", ["PUSH-DOC", "PULL-DOC-REPLY", "NOTHING"])
async def test_a_browser_replaces_no_page(kind: str, log: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        browser, page = await server.browser()
        before = page.values()
        content = {"doc": {"version": "3.9.2", "title": "mine", "roots": []}}
        assert await browser.send(content, kind) in ("ERROR", "closed")
        assert page.values() == before


@pytest.mark.parametrize(
    "frames",
    [
        ["{", "{}", "{}"],
        ["[]", "{}", "{}"],
        ["{}", "{}", "{}"],
        ["null", "null", "null"],
        ['{"msgid": 1, "msgtype": ["PATCH-DOC"]}', "{}", "{}"],
        ['{"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": "x"}', "{}", '{"events": []}', '{"id": 1}', b"x"],
        ['{"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": 1}', "{}", '{"events": []}', "[]"],
        ['{"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": 1}', "{}", '{"events": []}', '{"id": 1}', "text"],
        ["[" * 100_000, "{}", "{}"],
        [b"\x00\x01"],
    ],
)
async def test_what_is_no_message_ends_its_own_connection(frames: list[Any], log: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        other, others = await server.browser()
        browser, _ = await server.browser()
        await browser.say_raw(frames)
        assert await browser.ends()
        assert await other.change(others.model(others.whole), "value", 8) == "OK"


@pytest.mark.parametrize("content", [[], {"events": {}}, {"events": [1, None, []]}, {"events": "x"}, 3])
async def test_a_message_without_events_is_nothing(content: Any, log: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        browser, page = await server.browser()
        before = page.values()
        assert await browser.send(content) in ("OK", "ERROR")
        assert page.values() == before
        assert await browser.change(page.model(page.whole), "value", 5) == "OK"


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", "null", '{"do": 1}', '{"do": ["add"]}', '{"do": "burn"}', '{"do": "add"}', 3, None),
        *('{"do": "add", "x": NaN, "y": 1}', '{"do": "move", "i": -1, "x": 1, "y": 1, "done": true}'),
        *('{"do": "box", "box": [1]}', '{"do": "pick"}', '{"do": "pick", "event": "a"}', '{"do": "delete", "i": 1.5}'),
        *('{"do": "cell", "x": 1e400, "y": 1}', "[" * 9000, '{"do": "add", "x": true, "y": 1}'),
    ],
)
def test_a_figure_hears_what_its_script_says_and_nothing_else(text: Any) -> None:
    assert read_message(text) is None


@pytest.mark.parametrize("size", [1 << 10, 200 << 20])
async def test_packed_bytes_are_unpacked_up_to_a_limit(size: int, log: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        browser, page = await server.browser()
        packed = {"type": "bytes", "data": base64.b64encode(gzip.compress(bytes(size))).decode()}
        assert await browser.change(page.model(page.text), "value", packed) == "OK"
        assert page.text.value == "words"
    assert any("too many" in record.getMessage() for record in log.records) == (size > MOST_UNPACKED)


async def test_a_button_that_has_just_come_answers_its_first_press(log: pytest.LogCaptureFixture) -> None:
    """BokehJS names such a model whole, with attributes that the server does not take from a browser."""
    async with served() as server:
        browser, page = await server.browser()
        event = press(page.button)
        whole = {"type": "object", "name": "x", "id": model_of(page.button).id, "attributes": {"label": "forged"}}
        event["msg_data"]["values"]["entries"][0][1] = whole
        moved = changed(page.model(page.whole), "value", 6) | {"model": whole | {"id": page.model(page.whole).id}}
        assert await browser.send({"events": [event, moved]}) == "OK"
        await asyncio.sleep(0.3)
        assert (page.received, page.whole.value, page.button.label) == (["button"], 6, "button")


async def test_a_forged_token_makes_no_session_and_blocks_nobody(log: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        forged = generate_jwt_token("mine", expiration=300, extra_payload={"headers": {}, "cookies": 5})
        texts = (b"[]", b"5", b'{"session_id": []}', b"\xff")
        odd = [base64.urlsafe_b64encode(text).decode().rstrip("=") for text in texts]
        for token in (forged, forged, f"{forged}.signature", "no token", "", *odd, *(f"{each}.x" for each in odd)):
            line = await server.line(token)
            assert await Browser(line).ends(), token
        assert server.pages == []
        browser, page = await server.browser()
        assert await browser.change(page.model(page.whole), "value", 5) == "OK"


async def test_an_expired_token_is_one_line_in_the_log(log: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        key = server._server._tornado.secret_key
        name = generate_session_id(secret_key=key, signed=True)
        expired = generate_jwt_token(name, secret_key=key, signed=True, expiration=-1)
        assert await Browser(await server.line(expired)).ends()
        assert server.pages == []
    assert len(log.records) == 1


async def test_a_session_that_cannot_be_made_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(lambda document: None) as server:
        (context,) = server._tornado._applications.values()
        token = token_of(server, headers={}, cookies=5)  # signed, and still a payload that fails
        request = f"ws://127.0.0.1:{server.port}/app/ws"
        for _ in range(2):
            line = await websocket_connect(request, subprotocols=["bokeh", token])
            assert await Browser(line).ends()
            assert not context._pending_sessions


async def test_a_session_ends_with_its_connection(log: pytest.LogCaptureFixture) -> None:
    async with serving(lambda document: Page().build(document), check_unused_sessions_milliseconds=20) as server:
        line = await Served(server, []).line(token_of(server))
        await Browser(line).is_greeted()
        assert len(server.get_sessions("/app")) == 1
        line.close()
        async with asyncio.timeout(10):
            while server.get_sessions("/app"):
                await asyncio.sleep(0.02)


async def test_what_is_pressed_while_a_slider_moves_may_change_a_figure(log: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        browser, page = await server.browser()
        # A figure is Bokeh's own: it is written to at once, and only where the document is locked.
        page.button.on_click(lambda event: setattr(page.plot.xaxis[0], "axis_label", f"at {page.whole.value}"))
        moved = changed(page.model(page.whole), "value", 6)
        assert await browser.send({"events": [moved, press(page.button)]}) == "OK"
        await asyncio.sleep(0.3)
        assert page.plot.xaxis[0].axis_label == "at 6"


async def test_what_is_pressed_before_a_browser_has_painted_its_page_is_seen(log: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        browser, page = await server.browser()  # which has read the page, and not said that it is painted
        page.button.on_click(lambda event: setattr(page.button, "label", "pressed early"))
        assert await browser.send({"events": [press(page.button)]}) == "OK"
        assert await browser.text_with("pressed early")


async def test_a_change_follows_the_message_that_adds_its_model() -> None:
    """On a busy socket Panel queues what it sends, and Bokeh does not."""
    async with served() as server:
        browser, page = await server.browser()
        session, callbacks = page.document.session_context.session, page.document.callbacks
        (connection,) = session._subscribed_connections
        with await connection._socket.write_lock.acquire():
            page.document.hold()
            page.plot.add_layout(label := Label(x=0, y=0, text="new"))
            added, callbacks._held_events, callbacks._hold = callbacks._held_events, [], None
            schedule_write_events(page.document, [connection], added)
            change = partial(setattr, label, "text", "changed")
            changing = asyncio.ensure_future(session.with_document_locked(change))
            await asyncio.sleep(0.1)
        await changing
        first = await browser.text_with(f'"{label.id}"')
        assert '"name":"Label"' in first
