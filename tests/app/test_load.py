"""Load of a class: 200 students who read a lesson and answer a question, and pages that are opened and closed.

`docs/security.md` lists the results that meet their limits. `--log-cli-level=INFO` prints what was measured.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.websocket import websocket_connect

STUDENTS, PAGES = 200, 200
TEACHER, PUPIL = "the-teachers-token", "the-students-token"
CLASS = {"BNNVIZ_TOKEN": TEACHER, "BNNVIZ_STUDENT_TOKEN": PUPIL}
LECTURE_S = 240.0
EVERY_S = 2.0  # between two requests of a page, as in `app/classroom/bar.js`
WARM_PAGES, UNUSED_S = 200, 25.0  # after so many, memory no longer depends on when garbage is collected
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
        f" 99 % within {1000 * took[99 * len(took) // 100]:.0f} ms"
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
