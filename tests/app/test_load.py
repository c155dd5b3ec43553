"""Load of a class: 200 students who read a lesson and answer a question, and pages that are opened and closed.

`docs/security.md` lists the results that meet their limits. `--log-cli-level=INFO` prints what was measured.
"""

from __future__ import annotations

import asyncio
import html
import json
import logging
import re
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.websocket import WebSocketClosedError, websocket_connect

STUDENTS, PAGES = 200, 200
TEACHER, PUPIL = "the-teachers-token", "the-students-token"
CLASS = {"BNNVIZ_TOKEN": TEACHER, "BNNVIZ_STUDENT_TOKEN": PUPIL}
LECTURE_S = 240.0
EVERY_S = 2.0  # between two requests of a page, as in `app/classroom/bar.js`
WARM_PAGES, UNUSED_S = 200, 25.0  # after so many, memory no longer depends on when garbage is collected
HALF_A_DAY = 432_000  # steps of twelve hours at ten a second
OPENED, OPENED_S, PLAYS_S = 10, 9.0, 15.0  # pages next to a playing one, and how long they take
LONGEST_GAP_S = 0.3  # between two frames of the playing page
MOST_GROWTH = 20 << 20  # bytes

log = logging.getLogger(__name__)


class Client:
    """A browser without a screen: it keeps its cookie, and notes how long answers took."""

    took: list[float] = []

    def __init__(self, url: str) -> None:
        self.url, self._cookies = url, {}
        self._http = AsyncHTTPClient(force_instance=True, max_clients=8)

    async def fetch(self, path: str, body: Any = None) -> HTTPResponse:
        """Request a path of the server; a body is posted as JSON."""
        cookie = "; ".join("=".join(pair) for pair in self._cookies.items())
        headers = {"Accept": "text/html", "Origin": self.url, "Cookie": cookie}
        how = {} if body is None else {"method": "POST", "body": json.dumps(body)}
        request = HTTPRequest(f"{self.url}/{path}", headers=headers, follow_redirects=False, request_timeout=60, **how)
        begun = time.perf_counter()
        answer = await self._http.fetch(request, raise_error=False)
        self.took.append(time.perf_counter() - begun)
        self._cookies |= dict(each.split(";")[0].split("=", 1) for each in answer.headers.get_list("Set-Cookie"))
        if answer.code >= 400:
            raise HTTPClientError(answer.code, answer.body.decode()[:200])
        return answer

    async def enter(self, token: str) -> None:
        """Follow a link of the class."""
        await self.fetch(f"app?token={token}")
        assert self._cookies

    async def state(self) -> dict[str, Any]:
        """Return the question and the place of the teacher."""
        return json.loads((await self.fetch("class")).body)


class Tab:
    """A page that a browser has open: it acknowledges each frame as soon as it has come."""

    def __init__(self, url: str) -> None:
        self.url, self.frames, self.step, self._sent = url, [], 0, 0

    async def open(self, query: str) -> None:
        """Load a page, and ask for its document."""
        page = (await Client(self.url).fetch(f"app?{query}")).body.decode()
        request = HTTPRequest(self.url.replace("http", "ws") + "/app/ws", headers={"Origin": self.url})
        token = re.search(r'"token":"([^"]+)"', page)[1]
        self._socket = await websocket_connect(request, subprotocols=["bokeh", token])
        while '"ACK"' not in await self._socket.read_message():
            pass
        await self._say("PULL-DOC-REQ", {})

    async def watch(self) -> None:
        """Note when frames come, until the connection ends."""
        while (text := await self._socket.read_message()) is not None:
            if isinstance(text, bytes):
                continue
            if painted := re.search(r'"painted",{"type":"object","name":"ColumnDataSource","id":"(\w+)"', text):
                self._painted = painted[1]
                ready = {"type": "event", "name": "document_ready", "values": {"type": "map"}}
                await self._change({"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": ready})
            elif came := re.search(r'"number",\[(\d+)]],\["at",', text):
                self.frames.append(time.perf_counter())
                if step := re.search(r"class='step'[^>]*><b>([\d,]+)<", html.unescape(text)):
                    self.step = int(step[1].replace(",", ""))
                data = {"type": "map", "entries": [["number", [int(came[1])]]]}
                painted = {"model": {"id": self._painted}, "attr": "data", "new": data}
                with suppress(WebSocketClosedError):
                    await self._change({"kind": "ModelChanged", **painted})

    async def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    async def _change(self, event: dict[str, Any]) -> None:
        await self._say("PATCH-DOC", {"events": [event]})

    async def _say(self, kind: str, content: dict[str, Any]) -> None:
        self._sent += 1
        for part in ({"msgid": f"m{self._sent}", "msgtype": kind}, {}, content):
            await self._socket.write_message(json.dumps(part))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_200_students_read_a_lesson_and_no_answer_is_lost(serve: Callable[..., Any]) -> None:
    served = serve(env=CLASS, options=("--class", "--address", "127.0.0.1"))
    url = served.url.removesuffix("/app")

    async def study(number: int) -> list[int]:
        student = Client(url)
        await asyncio.sleep(EVERY_S * number / STUDENTS)
        await student.enter(PUPIL)
        for path in ("thinning.html", "player.js", "bokeh.js", "films/thinning-flight-2.js"):
            await student.fetch(f"lessons/{path}")
        answered = False
        while True:
            question = (await student.state())["question"]
            if question and question["phase"] == "open" and not answered:
                await student.fetch("class", {"question": question["number"], "choice": number % 3})
                answered = True
            if question and question["phase"] == "shown":
                return question["counts"]
            await asyncio.sleep(EVERY_S)

    async def teach() -> None:
        teacher = Client(url)
        await teacher.enter(TEACHER)
        while (await teacher.state())["people"] < STUDENTS:
            await asyncio.sleep(EVERY_S)
        await teacher.fetch("class", {"at": {"lesson": "thinning", "step": 3}})
        await teacher.fetch("class", {"ask": {"lesson": "thinning"}})
        while sum((await teacher.state())["question"]["counts"]) < STUDENTS:
            await asyncio.sleep(EVERY_S)
        await teacher.fetch("class", {"do": "show"})

    async def lecture() -> list[list[int]]:
        async with asyncio.timeout(LECTURE_S):
            _, *counts = await asyncio.gather(teach(), *map(study, range(STUDENTS)))
        return counts

    Client.took.clear()
    before, begun = served.process.cpu_times(), time.monotonic()
    counts = asyncio.run(lecture())
    used, seconds, took = served.process.cpu_times(), time.monotonic() - begun, sorted(Client.took)
    log.info(
        f"{len(took)} requests in {seconds:.0f} s: {used.user + used.system - before.user - before.system:.1f} CPU s,"
        f" {served.process.memory_info().rss / 2**20:.0f} MB; answers after {1000 * took[len(took) // 2]:.0f} ms,"
        f" 99% within {1000 * took[99 * len(took) // 100]:.0f} ms"
    )
    assert counts == [[67, 67, 66]] * STUDENTS


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_pages_that_are_closed_leave_no_memory(serve: Callable[..., Any]) -> None:
    served = serve()

    async def visit() -> None:
        page = (await Client(served.url.removesuffix("/app")).fetch("app?page=papers")).body.decode()
        token = re.search(r'"token":"([^"]+)"', page)[1]
        request = HTTPRequest(served.url.replace("http", "ws") + "/ws", headers={"Origin": served.url[: -len("/app")]})
        socket = await websocket_connect(request, subprotocols=["bokeh", token])
        assert await socket.read_message() is not None
        socket.close()

    async def visits(number: int) -> int:
        for _ in range(number):
            await visit()
        await asyncio.sleep(UNUSED_S)  # until the server has dropped the sessions
        return served.process.memory_info().rss

    async def measure() -> tuple[int, int]:
        return await visits(WARM_PAGES), await visits(PAGES)

    before, after = asyncio.run(measure())
    log.info(f"{before / 2**20:.0f} MB after {WARM_PAGES} pages, {after / 2**20:.0f} MB after {PAGES} more")
    assert after - before < MOST_GROWTH


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pages_that_open_do_not_hold_up_one_that_plays(serve: Callable[..., Any]) -> None:
    url = serve().url.removesuffix("/app")

    async def measure() -> list[float]:
        tabs = [Tab(url) for _ in range(1 + OPENED)]
        watching = []

        async def open_at(tab: Tab, seconds: float) -> None:
            await asyncio.sleep(seconds)
            await tab.open("page=lab")
            watching.append(asyncio.ensure_future(tab.watch()))

        await open_at(tabs[0], 0)
        await asyncio.sleep(PLAYS_S)
        begun = time.perf_counter()
        await asyncio.gather(*(open_at(tab, OPENED_S * number / OPENED) for number, tab in enumerate(tabs[1:])))
        log.info(f"opened within {time.perf_counter() - begun:.1f} s")
        await asyncio.sleep(PLAYS_S)
        ended = time.perf_counter()
        for tab in tabs:
            await tab.close()
        await asyncio.gather(*watching)
        assert all(tab.frames for tab in tabs)
        during = [at for at in tabs[0].frames if begun <= at <= ended]
        return sorted(after - before for before, after in pairwise([begun, *during, ended]))

    gaps = asyncio.run(measure())
    log.info(f"{len(gaps)} gaps, the longest {', '.join(f'{1000 * gap:.0f}' for gap in gaps[-10:])} ms")
    assert gaps[-1] < LONGEST_GAP_S


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_half_a_day_of_steps_takes_no_more_memory_than_half_of_it(serve: Callable[..., Any]) -> None:
    served = serve()

    async def measure() -> list[list[int]]:
        tab, seen = Tab(served.url.removesuffix("/app")), []
        await tab.open("page=lab&target=banana&sampler=sgld&chains=2&play=1")
        watching = asyncio.ensure_future(tab.watch())
        for steps in (HALF_A_DAY // 2, HALF_A_DAY):
            while tab.step < steps:
                assert not watching.done()
                await asyncio.sleep(1)
            seen.append([each.memory_info().rss for each in (served.process, *served.workers())])
        await tab.close()
        await watching
        log.info(f"{len(tab.frames)} frames")
        return seen

    middle, end = asyncio.run(measure())
    log.info(f"server and worker: {[rss >> 20 for rss in middle]} MB, then {[rss >> 20 for rss in end]} MB")
    assert all(now - then < MOST_GROWTH for then, now in zip(middle, end, strict=True))
