"""Pages are built in steps that hold nobody up, come out whole, and one after another."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import panel as pn
import pytest
from bokeh.application.handlers import DirectoryHandler
from bokeh.application.handlers.lifecycle import LifecycleHandler
from bokeh.core.serialization import Serializer
from bokeh.document import Document
from bokeh.io.doc import _PATCHED_CURDOCS
from bokeh.models import Column, ColumnDataSource, Div
from bokeh.protocol import Protocol
from bokeh.server.contexts import ApplicationContext
from bokeh.util.token import generate_jwt_token, generate_session_id
from panel.io.application import Application
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.ioloop import IOLoop

import bnnviz_app
from bnnviz_app import steps
from bnnviz_app.memory import Collector

LONGEST_S = 0.1  # of the thread's own time, for a step: .2 s is what a page may hold up others


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    steps.install()
    monkeypatch.setitem(pn.state.cache, "backend", Future())
    monkeypatch.setitem(pn.state.cache, "loading", set())
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


async def opened(context: ApplicationContext) -> Any:
    name = generate_session_id()
    token = generate_jwt_token(name, extra_payload={"headers": {}, "cookies": {}, "arguments": {}})
    line, headers = RequestStartLine("GET", "/app", "HTTP/1.1"), HTTPHeaders({"Host": "localhost"})
    request = HTTPServerRequest(start_line=line, headers=headers)
    return await context.create_session_if_needed(name, request, token)


def context() -> ApplicationContext:
    application = Application()
    handler = DirectoryHandler(filename=str(Path(bnnviz_app.__file__).parent))
    handler._lifecycle_handler = LifecycleHandler()  # a server's own would connect to workers
    application.add(handler)
    return ApplicationContext(application, io_loop=IOLoop.current(), url="/app")


def test_a_page_that_is_built_and_sent_holds_nobody_up_and_is_whole(cache: None) -> None:
    async def main() -> None:
        served, gaps, last = context(), [], time.thread_time()
        await opened(served)  # imports come once
        done = asyncio.Event()

        async def tick() -> None:
            nonlocal last
            last = time.thread_time()
            while not done.is_set():
                await asyncio.sleep(0)
                now = time.thread_time()
                gaps.append(now - last)
                last = now
                assert not _PATCHED_CURDOCS, "somebody else's page would be taken for one's own"

        ticking = asyncio.ensure_future(tick())
        session = await opened(served)
        connection: Any = SimpleNamespace(protocol=Protocol())
        reply = await session._handle_pull(SimpleNamespace(header={"msgid": "1"}), connection)
        done.set()
        await ticking
        assert len(gaps) > 20 and max(gaps) < LONGEST_S
        assert "Step proposal" in reply.content_json and "Lab" in reply.content_json
        session.destroy()

    asyncio.run(main())


def test_pages_come_one_after_another(cache: None) -> None:
    async def main() -> None:
        served, order = context(), []

        async def come(number: int) -> None:
            await opened(served)
            order.append(number)
            assert len(served._sessions) == number + 1

        await asyncio.gather(*map(come, range(3)))
        assert order == [0, 1, 2]

    asyncio.run(main())


def test_an_error_and_an_end_reach_what_works_in_steps() -> None:
    heard = []

    async def broken() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            heard.append("end")
            raise

    async def main() -> None:
        with pytest.raises(KeyError):
            await steps.InSteps(broken())
        task = asyncio.ensure_future(steps.in_steps(waits)())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert heard == ["end"]


def test_work_in_steps_takes_turns_and_ends_where_it_is_cancelled() -> None:
    order: list[str] = []
    turns: list[int] = []

    def busy(steps_of: int) -> None:
        for _ in range(steps_of):
            turns.append(0)
            assert len(turns) == 1, "everybody else has a turn between any two steps"
            until = time.perf_counter() + steps.STEP_S
            while time.perf_counter() < until:
                pass
            steps.getcurrent().mark()

    async def work(name: str) -> str:
        order.append(f"{name} begins")
        busy(4)
        order.append(f"{name} waits")
        await asyncio.sleep(0.01)
        return name

    async def main() -> None:
        async def others() -> None:
            while True:
                turns.clear()
                await asyncio.sleep(0)

        ticking = asyncio.ensure_future(others())
        assert await asyncio.gather(*(steps.InSteps(work(name)) for name in "ab")) == ["a", "b"]
        assert order == ["a begins", "b begins", "a waits", "b waits"]
        cancelled = asyncio.ensure_future(steps.in_steps(work)("c"))
        await asyncio.sleep(steps.STEP_S)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert order[-1] == "c begins" and not steps._turn().locked()
        ticking.cancel()

    asyncio.run(main())


def test_a_change_is_written_as_bokeh_writes_it(cache: None) -> None:
    source, new = ColumnDataSource({"x": [1, 2]}), Div(text="new")
    doc = Document()
    doc.add_root(Column(children=[Div(text="old"), Div(text="other")], tags=[source]))
    doc.models.flush_synced()
    found: list[Any] = []
    doc.on_change(found.append)
    doc.roots[0].children = [new, doc.roots[0].children[1]]
    source.data = {"x": [3, 4, 5]}
    new_models = set(doc.models._new_models)
    listed = {model for model in doc.models if model not in new_models}
    wanted = Serializer(references=listed).encode(found)
    message = Protocol().create("PATCH-DOC", found)
    assert message.content["events"] == wanted
    assert new in new_models
    assert not doc.models._new_models


def test_what_is_built_for_nobody_rests_where_somebody_plays_and_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    sleep = asyncio.sleep

    async def slept(seconds: float) -> None:
        rests.append(seconds)
        await sleep(0)

    async def two_steps() -> None:
        await sleep(0)

    async def built(ahead: bool) -> int:
        steps.AHEAD.set(ahead)
        rests.clear()
        await steps.InSteps(two_steps())
        return len(rests)

    monkeypatch.setattr(steps.asyncio, "sleep", slept)
    collector = Collector()
    monkeypatch.setattr(steps, "COLLECTOR", collector)
    assert asyncio.run(built(True)) == 0
    collector.played()
    assert asyncio.run(built(False)) == 0
    assert asyncio.run(built(True)) > 0
    with steps._IN_LINE:
        assert asyncio.run(built(True)) == 0


@pytest.mark.parametrize("kind", [pn.pane.HTML, pn.pane.Markdown])
def test_a_text_is_updated_as_it_was_written_first(cache: None, kind: type[pn.pane.HTML]) -> None:
    texts = "<b class='a'>one &amp; *two*</b>", "<i>three < 4</i>"
    pane = kind(texts[0])
    model = pane.get_root(Document())
    pane.object = texts[1]
    assert model.text == kind(texts[1]).get_root(Document()).text


@pytest.mark.parametrize("plays", [True, False])
def test_a_frame_passes_while_few_steps_are_taken(cache: None, monkeypatch: pytest.MonkeyPatch, plays: bool) -> None:
    """A frame is many callbacks, each of which would wait for a step of every page that opens."""
    monkeypatch.setattr(steps.COLLECTOR, "_played", time.monotonic() + 1e6 * (1 if plays else -1))
    monkeypatch.setattr(steps, "STEP_S", 1e-4)
    taken = 0

    async def build() -> None:
        nonlocal taken
        for _ in range(200):
            taken += 1
            Div()

    async def main() -> int:
        building = [asyncio.ensure_future(steps.in_steps(build)()) for _ in range(4)]
        while not taken:
            await asyncio.sleep(0)
        before = taken
        for _ in range(4 * steps.TURNS):
            await asyncio.sleep(0)
        passed = taken - before
        await asyncio.gather(*building)
        return passed

    passed = asyncio.run(main())
    assert passed <= 8 if plays else passed > 8
