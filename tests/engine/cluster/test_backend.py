"""Where runs execute: the runs of a worker by themselves, then a cluster of processes, with workers that are killed."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import dask
import numpy as np
import pytest

from bnnviz.engine.cluster import live_handle, live_run, live_runs
from bnnviz.engine.cluster.actor import RunActor
from bnnviz.engine.cluster.backend import Backend
from bnnviz.engine.cluster.live_runs import LiveRuns
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec

pytest.importorskip("distributed")

PLAIN = "test_backend:PlainRun"


class PlainRun:
    """A run with steps of known length, that breaks on demand: `settings` holds what it does."""

    has_history = is_fork = False
    runs = ()
    device = SimpleNamespace(type="cpu")

    def __init__(self, spec: Spec) -> None:
        self.spec, self.does = spec, spec.settings
        self.phase, self.steps, self.finished, self.error = "start", 0, False, None
        self.rng = np.random.default_rng(spec.seed)
        self.x, self.gain, self.watched, self.values = 0.0, 1.0, None, []
        self.generation, self.changes = 0, []
        if self.does.get("breaks") == "build":
            raise BnnvizError("This cannot be built; try another target.")

    def advance(self, seconds: float = 0.02) -> int:
        end, before = time.perf_counter() + seconds, self.steps
        while time.perf_counter() < end and not self.finished:
            if self.phase == "start":
                time.sleep(0.005)
                self.phase = "sampling"
                return 0
            self.step_proposal()
        return self.steps - before

    def step_proposal(self) -> None:
        until = time.thread_time() + self.does.get("step_s", 0.0005)  # so that a busy machine is no matter
        while time.thread_time() < until:
            pass
        if self.steps == self.does.get("breaks_at"):
            if self.does["breaks"] == "worker":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ArithmeticError("the rate is not finite")
        self.x = 0.9 * self.x + self.gain * self.rng.standard_normal()
        self.values.append(self.x)
        self.steps += 1
        if self.steps == self.spec.draws:
            self.phase, self.finished = "done", True

    def take(self, most: int, seconds: float = 0.02) -> int:
        self.step_proposal()
        return 1

    def step_event(self) -> None:
        self.step_proposal()
        while self.steps % 10:
            self.step_proposal()

    def change(self, settings: dict) -> None:
        if set(settings) != {"gain"}:
            raise BnnvizError("The only setting is gain; choose that one.", next(iter(settings)))
        self.gain = settings["gain"]
        self.changes.append((self.steps, settings))

    def release(self) -> None:
        pass

    def watch(self, chain: int = 0) -> None:
        self.watched = chain

    def scene(self) -> dict:
        return {"title": "plain"}

    def frame(self, want: list[str]) -> dict:
        if self.does.get("breaks") == "frame":
            raise KeyError("envelope")
        parts = {
            "status": {"step": self.steps, "phase": self.phase, "message": "", "chain": self.watched},
            "trace": {"values": np.array(self.values)},
            "path": {"step": self.steps},
            "events": {},
        }
        return {"seq": self.steps, **{name: parts[name] for name in want}}

    def checkpoint(self) -> bytes:
        return pickle.dumps(self.__dict__)

    @classmethod
    def restore(cls, data: bytes) -> PlainRun:
        run = cls.__new__(cls)
        run.__dict__.update(pickle.loads(data))
        return run


#: What a worker says of a run that plays.
LIVE_REPORT = {
    "state": "running",
    "message": "",
    "field": None,
    "held": True,
    "playing": True,
    "speed": None,
    "record": None,
}


def plain(**does: object) -> Spec:
    return Spec(settings=does, draws=None)


# The runs of a worker, in this process ---------------------------------------------------------------


@pytest.fixture
def runs(tmp_path: Path):
    made = LiveRuns(tmp_path / "live")
    yield made
    made.close()


def start(runs: LiveRuns, spec: Spec | None = None, run_id: str = "a", **options: object) -> RunActor:
    return RunActor(spec or plain(), run_id, factory=PLAIN, runs=runs, **options)


async def look(run: RunActor, *want: str, seen: int = -1) -> dict:
    return pickle.loads(await run.frame(list(want), seen))


async def step_of(run: RunActor) -> int:
    return (await run.scene())["step"]


async def until(condition, seconds: float = 10.0) -> None:
    """Wait until a condition (a function, or one that returns a coroutine) holds."""
    end = time.monotonic() + seconds
    while True:
        held = condition()
        if await held if asyncio.iscoroutine(held) else held:
            return
        assert time.monotonic() < end, "waited too long"
        await asyncio.sleep(0.01)


def test_three_runs_get_equal_shares(runs: LiveRuns) -> None:
    """Whatever their steps cost, and although one of them came later and one is looked at."""

    async def main() -> np.ndarray:
        each = [start(runs, plain(), name, play=True) for name in "ab"]
        await asyncio.sleep(0.3)
        each.append(start(runs, plain(step_s=0.005), "late", play=True))
        await until(lambda: each[2].run.step > 0)

        def had() -> np.ndarray:
            return np.array([run.run.step for run in each])

        before, end = had(), time.monotonic() + 3.0
        while time.monotonic() < end:
            await look(each[0], "status")
            await asyncio.sleep(0.05)
        return had() - before

    work = asyncio.run(main()) * [0.0005, 0.0005, 0.005]
    assert np.all(np.abs(work / work.mean() - 1) < 0.5), work


async def test_commands_do_what_they_say(runs: LiveRuns) -> None:
    run = start(runs)
    assert (await run.scene())["scene"] == {"title": "plain"}
    await until(lambda: runs._runs["a"].host.run.phase == "sampling")
    await run.command("proposal", {})
    assert await step_of(run) == 1
    await run.command("event", {})
    assert await step_of(run) == 10
    reply = await run.command("change", {"settings": {"gain": 2.0}})
    assert (reply["step"], reply["changes"]) == (10, 1)
    await run.command("proposal", {"times": 3})
    assert await step_of(run) == 13
    await run.command("watch", {"chain": 3})
    status = (await look(run, "status"))["frame"]["status"]
    assert status["chain"] == 3 and status["shared"] == 0 and status["playing"] is False

    await run.command("play", {})
    await until(lambda: runs._runs["a"].step > 200)
    assert (await look(run, "status"))["frame"]["status"]["shared"] == 1
    stood = (await run.command("pause", {}))["step"]
    await asyncio.sleep(0.1)
    assert await step_of(run) == stood

    await run.command("speed", {"value": 50})
    await run.command("play", {})
    await asyncio.sleep(1.0)
    assert 35 <= await step_of(run) - stood <= 60


@pytest.mark.parametrize(
    ("name", "args", "field"),
    [
        ("change", {"settings": {"loss": 1}}, "loss"),
        ("speed", {"value": -1}, "speed"),
        ("speed", {"value": "fast"}, "speed"),
        ("fly", {}, "command"),
    ],
)
async def test_a_refused_command_says_why_and_changes_nothing(
    runs: LiveRuns, name: str, args: dict, field: str
) -> None:
    run = start(runs)
    await run.scene()
    with pytest.raises(BnnvizError) as refused:
        await run.command(name, args)
    assert refused.value.field == field
    assert (await run.scene())["state"] == "running"


async def test_frames_are_fresh_and_only_made_when_asked_for(runs: LiveRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_run, "SETTLE_S", 0.2)
    made = []
    frame = PlainRun.frame
    monkeypatch.setattr(PlainRun, "frame", lambda self, want: made.append(want) or frame(self, want))
    run = start(runs, play=True)
    await run.scene()
    await asyncio.sleep(0.2)
    assert made == []
    waits, steps = [], []
    for _ in range(20):
        begin = time.monotonic()
        reply = await look(run, "path")
        waits.append(time.monotonic() - begin)
        steps.append(reply["frame"]["path"]["step"])
        assert set(reply["frame"]) == {"seq", "path"}
        await asyncio.sleep(0.005)
    assert np.all(np.diff(steps) > 0)
    assert np.median(waits) < 0.04, waits
    # at full speed the parts with numbers come now and then, all of one step
    complete = [
        frame for frame in [(await look(run, "status", "path"))["frame"] for _ in range(20)] if "status" in frame
    ]
    assert len(complete) < 20 and all(frame["status"]["step"] == frame["path"]["step"] for frame in complete)
    # once nothing moves any more, a caller who has seen it all gets nothing; another one does
    await run.command("pause", {})
    seen = (await look(run, "status"))["version"]
    await asyncio.sleep(0.3)
    assert (await look(run, "status", seen=seen))["frame"] is None
    assert (await look(run, "status"))["frame"] is not None


async def test_a_run_that_nobody_can_reach_ends(runs: LiveRuns) -> None:
    run = start(runs, play=True)
    await until(lambda: runs._runs["a"].step > 0)
    del run
    gc.collect()
    await until(lambda: not runs.census(), 2)
    await until(runs.checkpoints.path("a").exists)


@pytest.mark.parametrize("breaks", ["step", "frame", "build"])
async def test_a_failing_run_leaves_the_others_alone(
    runs: LiveRuns, breaks: str, caplog: pytest.LogCaptureFixture
) -> None:
    good = start(runs, run_id="good", play=True)
    bad = start(runs, plain(breaks=breaks, breaks_at=50 if breaks == "step" else -1), "bad", play=True)
    await bad.scene()
    await look(bad, "status")
    await until(lambda: runs._runs["bad"].state == "failed")
    reply = await look(bad, "trace")
    assert reply["state"] == "failed" and reply["message"].endswith(".")
    if breaks == "step":
        assert "the rate is not finite" in reply["message"]
        assert len(reply["frame"]["trace"]["values"]) == 50  # what it has drawn is still there
    before = await step_of(good)
    await asyncio.sleep(0.1)
    assert await step_of(good) > before
    assert [row["run_id"] for row in runs.census()] == ["good"]
    assert "bad failed" in caplog.text and "Traceback" in caplog.text


async def test_a_worker_holds_a_bounded_number_of_runs(runs: LiveRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_runs, "MOST_RUNS", 2)
    first, _, third = [start(runs, run_id=name) for name in "abc"]
    await until(lambda: third.run.state == "failed")
    assert "2 live runs" in third.run.message
    await first.stop()
    await until(lambda: first.run.host is None)
    fourth = start(runs, run_id="d")
    assert (await fourth.scene())["state"] == "running"


def test_a_run_that_has_ended_leaves_nothing_in_memory(runs: LiveRuns) -> None:
    spec = Spec(target="banana", sampler="bps", draws=None)

    async def main() -> None:
        run = RunActor(spec, "a", factory=spec.factory, runs=runs, play=True)
        await until(lambda: run.run.host is not None)
        kept = [weakref.ref(run.run.host.run), weakref.ref(run.run.host.travel)]
        await until(lambda: run.run.step > 100)
        await run.stop()
        await until(lambda: runs.census() == [] and [ref() for ref in kept] == [None, None])

    gc.disable()  # who holds the actor, and when Python looks for cycles, is not to matter
    try:
        asyncio.run(asyncio.wait_for(main(), 20))
    finally:
        gc.enable()


async def test_checkpoints_are_written_swept_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_run, "LEAST_S", 0.1)
    old, young = tmp_path / "old.ckpt", tmp_path / "young.ckpt"
    for path in (old, young):
        path.write_bytes(b"")
    os.utime(old, (0, 0))
    runs = LiveRuns(tmp_path)
    run = start(runs, play=True)
    path = runs.checkpoints.path("a")
    await until(path.exists)
    first = path.stat().st_mtime_ns
    await until(lambda: path.stat().st_mtime_ns > first)
    assert not old.exists() and young.exists()
    await run.command("pause", {})
    step = await step_of(run)
    await until(lambda: PlainRun.restore(runs.checkpoints.read("a")).steps == step)
    await run.stop()
    await until(lambda: not path.exists())
    assert runs.census() == []
    runs.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["young.ckpt"]


@pytest.mark.parametrize("kept", ["nothing", "early", "all"])
def test_a_lost_run_makes_the_same_draws(runs: LiveRuns, kept: str) -> None:
    """From its checkpoint, or from the start with its change log: changes come at the steps where they came."""

    async def main() -> tuple[list[float], list[float]]:
        run = start(runs)
        await run.scene()
        log: list = []
        for enough, gain in ((100, 2.0), (200, 0.5)):
            await run.command("play", {})
            await until(lambda enough=enough: runs._runs["a"].step > enough)
            await run.command("pause", {})
            if kept == "early" and not log:
                early = runs._runs["a"].host.run.checkpoint()
            log = (await run.command("change", {"settings": {"gain": gain}}))["log"]
        await run.command("play", {})
        await until(lambda: runs._runs["a"].step > 400)
        await run.command("pause", {})
        lost = runs._runs["a"].host.run
        if kept == "all":
            runs.checkpoints.write("b", lost.checkpoint()).result()
        if kept == "early":
            runs.checkpoints.write("b", early).result()
        last = lost.steps
        new = start(runs, run_id="b", restore=True, past=log, play=True)
        await new.scene()
        resumed = (await new.scene())["resumed"]
        assert {"nothing": resumed == 0, "early": 0 < resumed < 200, "all": resumed > 400}[kept]
        await until(lambda: runs._runs["b"].step >= last)
        return lost.values[:last], runs._runs["b"].host.run.values[:last]

    lost, new = asyncio.run(main())
    assert lost == new


# A cluster -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNNVIZ_HOME", str(folder))
        patch.delenv("BNNVIZ_SCHEDULER", raising=False)
        yield folder


@pytest.fixture(scope="module")
def backend(home: Path):
    with Backend.connect(workers=1) as made:
        yield made


async def census(backend: Backend) -> list[dict]:
    return await asyncio.to_thread(backend.census)


async def pull(handle, *want: str, seconds: float = 90.0) -> dict:
    end = time.monotonic() + seconds
    while True:
        frame = await handle.frame(list(want))
        if frame is not None:
            return frame
        assert time.monotonic() < end, (handle.state, handle.notice)
        await asyncio.sleep(0.02)


async def kill_worker_of(backend: Backend, handle) -> None:
    pids = await asyncio.to_thread(backend.client.run, os.getpid)
    os.kill(pids[handle.address], signal.SIGKILL)


@pytest.mark.slow
async def test_a_replaced_worker_goes_on_as_it_was_reported(backend: Backend) -> None:
    handle = backend.start(plain(), factory=PLAIN)
    await handle.scene()
    with pytest.raises(BnnvizError) as refused:
        await handle.command("change", settings={"loss": 1})
    assert refused.value.field == "loss"
    await handle.command("watch", chain=2)
    await handle.command("change", settings={"gain": 2.0})
    await handle.command("speed", value=100)
    await handle.command("play")
    step = (await pull(handle, "status"))["status"]["step"]
    await kill_worker_of(backend, handle)
    await until(lambda: handle.state == "recovering")
    assert "lost" in handle.notice
    status = (await pull(handle, "status"))["status"]
    assert (status["chain"], status["speed"], status["playing"]) == (2, 100, True)
    assert status["step"] >= step - 100 * live_run.LEAST_S
    assert (await handle.command("change", settings={"gain": 1.0}))["changes"] == 2
    assert [row["run_id"] for row in await census(backend)] == [handle.run_id]
    await handle.command("stop")
    assert handle.state == "ended" and await census(backend) == [] and await handle.frame(["status"]) is None
    with pytest.raises(BnnvizError, match="stopped"):
        await handle.command("play")


async def test_a_run_that_no_page_shows_ends_at_once(backend: Backend) -> None:
    gc.disable()  # otherwise the end may be due to a collection
    try:
        handle = backend.start(plain(), factory=PLAIN, play=True)
        await handle.scene()
        await pull(handle, "status")
        handle.let_go()
        await until(lambda: not backend.census(), 5)
    finally:
        gc.enable()


def test_a_remote_cluster_is_used_by_its_address(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BNNVIZ_SCHEDULER", backend.client.scheduler.address)

    async def main(remote: Backend) -> None:
        handle = remote.start(plain(), play=True, factory=PLAIN)
        assert (await pull(handle, "status"))["status"]["step"] >= 0
        assert handle.run_id in [row["run_id"] for row in await census(backend)]

    security = backend._cluster.security
    tls = {
        "ca-file": security.tls_ca_file,
        "client.cert": security.tls_client_cert,
        "client.key": security.tls_client_key,
    }
    with (
        dask.config.set({f"distributed.comm.tls.{name}": value for name, value in tls.items()}),
        Backend.connect() as remote,
    ):
        assert "cpu" in remote.devices() and remote.notice is None
        asyncio.run(main(remote))
    # the client that started it has gone, and its run with it
    asyncio.run(until(lambda: not backend.census(), 5))


async def test_a_frame_that_comes_late_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker counts it as seen: were it dropped, nothing would bring what it shows again."""
    monkeypatch.setattr(live_handle, "CALL_S", 0.05)
    asked: list[list[str]] = []

    async def slowly(want: list[str], seen: int) -> bytes:
        asked.append(want)
        await asyncio.sleep(0.12)
        return pickle.dumps(LIVE_REPORT | {"frame": {name: len(asked) for name in want}, "version": 1})

    loop = asyncio.get_running_loop()
    backend = SimpleNamespace(client=SimpleNamespace(loop=SimpleNamespace(asyncio_loop=loop)))
    handle = live_handle.LiveHandle(backend, plain(), play=True, fixed={"factory": PLAIN, "origin": None})
    handle._actor = SimpleNamespace(frame=slowly)
    handle._up.set()
    assert await handle.frame(["table"]) is None  # it is still on its way
    assert "has not answered" in handle.notice
    late = None
    while late is None:
        late = await handle.frame(["path"])
    assert late["table"] == 1 and asked == [["table"]]
    assert not handle.notice, "an answer came: it is not true any more"
    assert await handle.frame(["path"]) is None and asked == [["table"], ["path"]]


@pytest.mark.slow
async def test_a_run_that_kills_its_workers_is_given_up(backend: Backend) -> None:
    handle = backend.start(plain(breaks="worker", breaks_at=40), play=True, factory=PLAIN)
    while handle.state != "failed":
        await handle.frame(["status"])
        await asyncio.sleep(0.05)
    assert "lost 3 times" in handle.notice
    with pytest.raises(BnnvizError, match="lost 3 times"):
        await handle.scene()
    await until(lambda: len(backend.client.run(os.getpid)) >= 1, 20)
