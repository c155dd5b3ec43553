"""Measure a class: how many students play, how many follow, how pages open beside them, and what is left of a thousand.

The server is the real ``bnnviz serve --class`` in a process of its own; the students are tabs without a browser, so
that two cores hold them all. What a browser paints, ``bnnviz bench live`` measures.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from operator import itemgetter
from typing import Any

from bnnviz.benchmarks.processes import Dashboard, cpu_seconds, dashboard
from bnnviz.benchmarks.statistics import quantile
from bnnviz.benchmarks.suite import Goal, Row, Suite, Tell
from bnnviz.benchmarks.tabs import Tab
from bnnviz.errors import BnnvizError

OWN, FOLLOWERS, AT_ONCE, CHURN, TOGETHER = (1, 8, 20, 40), 60, 20, 1000, 10
FREEZE, OPENED, LEFT, GROWTH = Goal("<=", 0.3), Goal("<=", 10), Goal("<=", 0), Goal("<=", 50)
PREPARED_S = 300.0  # for pages that are built ahead
BUILT_S, IDLE_S = 10.0, 1.0  # CPU seconds that these take at least, and most in two looks at a server that waits
PLAYS_S = 400.0  # until all have played, some of them in their turn
SETTLE_S = 3.0
FAREWELL_S = 25.0  # a page that nobody has is kept for some time


def own_runs(seconds: float, tell: Tell) -> Iterator[Row]:
    """Measure students who play runs of their own."""
    with _served(tell) as served:
        for number in OWN:
            yield from asyncio.run(_own(served, number, seconds, tell))


def followers(seconds: float, tell: Tell) -> Iterator[Row]:
    """Measure students who follow the teacher's run, against the teacher alone."""
    with _served(tell) as served:
        yield from asyncio.run(_followed(served, seconds, tell))


def opening(seconds: float, tell: Tell) -> Iterator[Row]:
    """Open pages at once, while another one plays."""
    with _served(tell) as served:
        yield from asyncio.run(_opened(served, seconds, tell))


def churn(seconds: float, tell: Tell) -> Iterator[Row]:
    """Open and close pages, a third of them in the middle of their start, and count what is left."""
    with _served(tell) as served:
        yield from asyncio.run(_churned(served, tell))


SUITE = Suite(
    name="class",
    title="a class: students who play, follow, come and go",
    cases={"own_runs": own_runs, "followers": followers, "opening": opening, "churn": churn},
)


@contextlib.contextmanager
def _served(tell: Tell) -> Iterator[Dashboard]:
    with dashboard(classroom=True) as served:
        tell("Waiting for the pages that the server builds ahead.")
        until, looks = time.monotonic() + PREPARED_S, [0.0]
        # They are there when the server has had little to do at two looks: the pages that wait keep it awake a little.
        while time.monotonic() < until and (looks[-1] < BUILT_S or looks[-1] - looks[-3] > IDLE_S):
            time.sleep(SETTLE_S)
            looks.append(cpu_seconds(served.process))
        yield served


def _tabs(served: Dashboard, number: int, query: str = "") -> list[Tab]:
    return [Tab(served.page + query, served.student) for _ in range(number)]


@asynccontextmanager
async def _open(tabs: list[Tab]) -> AsyncIterator[list[Tab]]:
    try:
        await asyncio.gather(*(tab.open() for tab in tabs))
        yield tabs
    finally:
        for tab in tabs:
            tab.close()
        await asyncio.sleep(0.5)


async def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PLAYS_S
    while not condition():
        if time.monotonic() > end:
            raise BnnvizError(f"The class cannot be measured: {what} within {PLAYS_S:g} s.")
        await asyncio.sleep(0.1)


async def _playing(tabs: list[Tab]) -> None:
    await _until(lambda: all(len(tab.frames) > 5 for tab in tabs), "not all pages have played")
    await asyncio.sleep(SETTLE_S)


async def _own(served: Dashboard, number: int, seconds: float, tell: Tell) -> list[Row]:
    tell(f"{number} students play.")
    # Two pages a person are allowed: each is somebody else.
    async with _open(_tabs(served, number, "?play=1")) as tabs:
        await _playing(tabs)
        return await _watched(served, tabs, seconds, f"{number}_own")


async def _watched(served: Dashboard, tabs: list[Tab], seconds: float, name: str) -> list[Row]:
    begun, used = time.monotonic(), cpu_seconds(served.process)
    await asyncio.sleep(seconds)
    used = cpu_seconds(served.process) - used
    seen = [tab.since(begun) for tab in tabs]
    frames, ages = sum(map(len, seen)), [age for frames in seen for _, age in frames]
    found = [_gaps(frames, begun, tab.told) for tab, frames in zip(tabs, seen, strict=True)]
    gaps = [gap for each in found for gap, waits in each if not waits]
    waits = [wait for each in found for wait in _waits(each)]
    at_once = len(tabs) - sum(waits) / seconds
    return [
        Row(f"{name}_at_once", at_once, "pages"),
        Row(f"{name}_longest_wait", max(waits, default=0.0), "s"),
        Row(f"{name}_rate", frames / seconds / max(at_once, 1e-9), "1/s"),
        Row(f"{name}_age_p95", 1000 * quantile(ages, 0.95), "ms"),
        Row(f"{name}_gap_p99", quantile(gaps, 0.99), "s"),
        Row(f"{name}_freeze", max(gaps), "s", FREEZE),
        Row(f"{name}_server_cpu", 1000 * used / max(1, frames), "ms/frame"),
        Row(f"{name}_memory", served.process.memory_info().rss / 1e6, "MB"),
    ]


def _gaps(
    frames: list[tuple[float, float]], begun: float, told: Sequence[tuple[float, bool]] = ()
) -> list[tuple[float, bool]]:
    """Return the times between frames (moment, age) from a moment on until now, by when the server has sent them.

    Beside each is whether the run waits in it for its turn: the last that the page was told before it is that its run
    does not play. So what passes until a page is told that its turn has ended counts as a time without a frame.
    """
    sent = [(max(begun, moment - age), moment) for moment, age in frames]
    moments = [(begun, begun), *sent, (time.monotonic(), math.inf)]
    words, plays, found = iter([*told, (math.inf, True)]), True, []
    moment, said = next(words)
    for (before, came), (after, _) in itertools.pairwise(moments):
        while moment <= came:
            plays = said
            moment, said = next(words)
        found.append((after - before, not plays))
    return found


def _waits(gaps: list[tuple[float, bool]]) -> list[float]:
    """Return the times from the end of a turn to the next one, of times between frames as `_gaps` returns them."""
    return [sum(gap for gap, _ in group) for waits, group in itertools.groupby(gaps, itemgetter(1)) if waits]


async def _followed(served: Dashboard, seconds: float, tell: Tell) -> list[Row]:
    teacher = Tab(served.page + "?play=1", served.token)
    async with _open([teacher]):
        await _playing([teacher])
        begun, used = time.monotonic(), cpu_seconds(served.process)
        await asyncio.sleep(seconds)
        alone, rate = cpu_seconds(served.process) - used, len(teacher.since(begun)) / seconds
        tell(f"{FOLLOWERS} students follow.")
        begun = time.monotonic()
        async with _open(_tabs(served, FOLLOWERS, "?page=follow")) as tabs:
            opened = time.monotonic() - begun
            await _playing(tabs)
            used = cpu_seconds(served.process)
            rows = await _watched(served, tabs, seconds, f"{FOLLOWERS}_followers")
            used = cpu_seconds(served.process) - used
    return [
        Row("teacher_alone_rate", rate, "1/s"),
        Row("teacher_alone_server_cpu", alone / seconds, "s/s"),
        Row("with_followers_server_cpu", used / seconds, "s/s"),
        Row("followers_opened", opened, "s"),
        *rows,
    ]


async def _opened(served: Dashboard, seconds: float, tell: Tell) -> list[Row]:
    async with _open(_tabs(served, 1, "?play=1")) as (player,):
        await _playing([player])
        tell(f"Opening {AT_ONCE} pages at once.")
        begun, used = time.monotonic(), cpu_seconds(served.process)
        async with _open(_tabs(served, AT_ONCE)) as tabs:
            took = max(tab.opened_s for tab in tabs)
            used = cpu_seconds(served.process) - used
            return [
                Row("all_opened", took, "s", OPENED),
                Row("first_opened", min(tab.opened_s for tab in tabs), "s"),
                Row("freeze", max(gap for gap, _ in _gaps(player.since(begun), begun)), "s", FREEZE),
                Row("server_cpu", used / AT_ONCE, "s/page"),
            ]


async def _churned(served: Dashboard, tell: Tell) -> list[Row]:
    rng, before = random.Random(0), None
    for begun in range(0, CHURN, TOGETHER):
        await asyncio.gather(*(_visit(served, rng.random()) for _ in range(TOGETHER)))
        if begun == CHURN // 10:
            await asyncio.sleep(FAREWELL_S)
            before = _held(served)
        if begun % 100 == 0:
            tell(f"{begun} of {CHURN} pages have been opened and closed.")
    await asyncio.sleep(FAREWELL_S)
    after = _held(served)
    with served.cluster() as backend:
        runs = len(backend.census())
    return [
        Row("runs_left", runs, "runs", LEFT),
        *(Row(f"{name}_left", after[name] - before[name], name, LEFT) for name in ("threads", "descriptors")),
        Row("memory_growth", after["memory"] - before["memory"], "MB", GROWTH),
    ]


async def _visit(served: Dashboard, chance: float) -> None:
    """Open a page and close it: a third of them while it is built, fetched but not connected, or begins its run."""
    tab = Tab(served.page + ("?play=1" if chance < 0.5 else ""), served.student)
    try:
        if chance < 0.11:
            await asyncio.wait_for(tab.open(), 5 * chance)
        elif chance < 0.22:
            await tab.fetch()
        else:
            await tab.open()
            await asyncio.sleep(0 if chance < 0.33 else chance)
    except (TimeoutError, OSError, EOFError):
        pass
    finally:
        tab.close()


def _held(served: Dashboard) -> dict[str, Any]:
    process = served.process
    return {
        "threads": process.num_threads(),
        "descriptors": process.num_fds(),
        "memory": process.memory_info().rss / 1e6,
    }
