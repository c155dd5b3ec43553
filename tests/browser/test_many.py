"""Many tabs: they leave nothing behind, share the machine fairly, and wait for their turn with a sentence."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import distributed
import numpy as np
import pytest
from test_lab import ON_NETWORK, Lab, cluster, until

from bnnviz.benchmarks.browser import LabTab as Measured
from bnnviz.engine.cluster.backend import Backend, LiveHandle
from bnnviz.engine.cluster.local_cluster import CONFIG, PRELOAD
from bnnviz.engine.cluster.places import CAPACITY
from bnnviz.specs.run import Spec
from bnnviz_app.launch import SESSION_LIFETIME_MS

MIB = 2**20
TABS = 20
MOST_MORE = 50 * MIB
TOGETHER = 8
SECONDS = 12.0
LATEST_S = 0.3


def report(sentence: str) -> None:
    """Show a figure in the log of the tests."""
    sys.stderr.write(f"\n{sentence}\n")


@pytest.fixture(scope="module")
def dashboard(own_dashboard: Any) -> Any:
    """Give a dashboard that no other tests have seen: what it holds is measured."""
    return own_dashboard


@pytest.fixture
def one_worker(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run a scheduler with one worker, whatever the machine; return its address."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BNNVIZ_INSECURE", "1")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        memory_limit=4 * 2**30,
        preload=[PRELOAD],
        config=CONFIG,
    ) as running:
        yield running.scheduler_address


# ---- one after another --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_tabs_opened_and_closed_in_turn_leave_nothing(open_page: Callable[..., Any], dashboard: Any) -> None:
    def visit() -> None:
        page = open_page(dashboard.url + ON_NETWORK)
        lab = Lab(page).ready()
        lab.press("Play")
        until(lambda: lab.number("step") > 20, 30, "it did not play")
        page.context.close()

    def at_rest() -> tuple[int, int, dict[int, int]]:
        """Return the page's threads and memory and the workers' memory, when no run is left."""
        until(lambda: backend.census() == [], 30, f"runs are left: {backend.census()}")
        time.sleep(SESSION_LIFETIME_MS / 1000 + 5)
        page = dashboard.process
        return page.num_threads(), page.memory_info().rss, {w.pid: w.memory_info().rss for w in dashboard.workers()}

    # The first ones fill caches, and start the spare worker and the pools of threads.
    for _ in range(5):
        visit()
    with cluster(dashboard) as backend:
        threads, memory, workers = at_rest()
        for _ in range(TABS):
            visit()
        threads_after, memory_after, workers_after = at_rest()
    more = {pid: workers_after[pid] - before for pid, before in workers.items()}
    report(
        f"{TABS} tabs in turn: threads {threads} to {threads_after}, page {(memory_after - memory) / MIB:+.0f} MiB "
        f"(of {memory / MIB:.0f}), workers {', '.join(f'{value / MIB:+.0f} MiB' for value in more.values())}"
    )
    assert threads_after <= threads
    assert memory_after - memory < MOST_MORE
    assert max(more.values()) < MOST_MORE


# ---- at once ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_tabs_at_once_share_the_machine_and_none_freezes(
    one_worker: str, serve: Callable[..., Any], open_page: Callable[..., Any]
) -> None:
    served = serve(env={"BNNVIZ_SCHEDULER": one_worker})
    labs = [Lab(open_page(served.url + ON_NETWORK)).ready() for _ in range(TOGETHER)]
    for lab in labs:
        lab.press("Play")
    for lab in labs:
        until(lambda lab=lab: lab.number("draws") > 0, 120, "a run is still at its start")
    for lab in labs:
        until(lambda lab=lab: lab.page.locator(".line .shared").count(), 20, "it is not said that the worker is shared")
        assert lab.page.locator(".line .shared").inner_text() == f"shared with {TOGETHER - 1} other runs"
    for lab in labs:
        Measured(lab.page).probe()
    with Backend.connect(one_worker) as backend:
        before, begin = steps_of(backend), time.time()
        time.sleep(SECONDS)
        after = steps_of(backend)
    seen = [Measured(lab.page).read().since(begin) for lab in labs]
    steps = [after[run] - before[run] for run in before]
    late = [np.quantile([painted - sent for sent, _, painted in each.frames], 0.95) for each in seen]
    rates = [len(each.frames) / (each.now - begin) for each in seen]
    report(
        f"{TOGETHER} tabs at once: {min(steps)} to {max(steps)} steps each in {SECONDS:g} s; latency, 95th percentile "
        f"{1000 * min(late):.0f} to {1000 * max(late):.0f} ms; {min(rates):.1f} to {max(rates):.1f} frames/s"
    )
    report(f"steps of each: {sorted(steps)}")
    assert len(steps) == TOGETHER
    assert max(steps) - min(steps) <= 0.2 * statistics.mean(steps)
    assert max(late) < LATEST_S


def steps_of(backend: Backend) -> dict[str, int]:
    """Return the steps of each run there is."""
    return {row["run_id"]: row["step"] for row in backend.census()}


# ---- one too many -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_too_many_queues_with_a_sentence_and_starts_in_its_turn(
    one_worker: str, serve: Callable[..., Any], open_page: Callable[..., Any]
) -> None:
    with Backend.connect(one_worker) as backend:
        spec = Spec.from_json({"target": "banana", "sampler": "bps", "draws": None}).checked()
        others = [backend.start(spec, play=True, lease_s=None) for _ in range(CAPACITY)]
        until(lambda: sum(row["state"] == "running" for row in backend.census()) == CAPACITY, 60, "they do not run")
        lab = Lab(open_page(serve(env={"BNNVIZ_SCHEDULER": one_worker}).url + ON_NETWORK))
        sentence = f"This worker already advances {CAPACITY} live runs; this one is number 1 in the queue"
        lab.page.wait_for_selector(".said")
        until(lambda: sentence in lab.said(), 30, f"it is not said: {lab.said()}")
        lab.press("Play")
        lab.page.wait_for_timeout(3000)
        assert sentence in lab.said()
        assert max(row["step"] for row in backend.census() if row["state"] == "queued") == 0
        stop(others[0])
        lab.ready()
        until(lambda: lab.number("step") > 20, 30, "it does not play although there is room")
        assert "queue" not in lab.said()
        for other in others[1:]:
            stop(other)


def stop(handle: LiveHandle) -> None:
    """Stop a run from a thread of its own: Playwright keeps an event loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(handle.sync, "stop").result(10)
