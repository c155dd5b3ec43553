"""Sweeps: every run becomes a recording with the draws of a run of its own, whatever happens on the way."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from bnnviz.cli.main import main
from bnnviz.engine.cluster.jobs import scheduling
from bnnviz.engine.cluster.jobs import worker as job_worker
from bnnviz.engine.recording import resume as resuming
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.resume import resume
from bnnviz.engine.run.run import Run
from bnnviz.engine.sweep import worker as sweepwork
from bnnviz.engine.sweep.sweep import Sweep
from bnnviz.errors import BnnvizError
from bnnviz.experiments import EXPERIMENTS, Case, Experiment, find, results
from bnnviz.files import write_json
from bnnviz.specs.run import Spec
from bnnviz.specs.sweep import SweepSpec

distributed = pytest.importorskip("distributed")
zarr = pytest.importorskip("zarr")

TINY = "base: {target: gaussian, sampler: hmc, chains: 2, draws: 30, warmup: 5}\n"
LONG = "base: {target: gaussian, sampler: hmc, chains: 2, draws: 400, warmup: 5}\n"


@pytest.fixture(autouse=True)
def no_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use schedulers without TLS: those here are started as plainly as can be."""
    monkeypatch.setenv("BNNVIZ_INSECURE", "1")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A cluster whose two workers are threads of this process: no start to wait for, and nothing to kill."""
    options = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "protocol": "tcp", "host": "127.0.0.1"}
    with distributed.LocalCluster(**options, dashboard_address=None, scheduler_kwargs={"dashboard": False}) as cluster:
        yield cluster.scheduler_address


def swept(text: str, out: Path, scheduler: str | None, **options: object) -> tuple[list[dict], list]:
    with Sweep(SweepSpec.from_text(text), out, scheduler=scheduler) as sweep:
        events = list(sweep.events(**options))
        return sweep.rows(), events


def draws(folder: Path) -> np.ndarray:
    return zarr.open_group(folder / "draws.zarr", mode="r")["posterior/x"][:]


def uninterrupted(spec: Spec) -> np.ndarray:
    run = Run(spec)
    while not run.finished:
        run.advance(0.2)
    return run.draws


def soon() -> Callable[[], bool]:
    """Return what says that a sweep is to stop when it has looked around twice."""
    asked = iter([False, False])
    return lambda: next(asked, True)


def assert_all_recorded(text: str, out: Path) -> None:
    for name, spec in SweepSpec.from_text(text).runs.items():
        assert Recording(out / name).progress["finished"]
        np.testing.assert_array_equal(draws(out / name), uninterrupted(spec))
    assert not list((out / sweepwork.GOING).iterdir())


# --- on workers that see the folder


def test_every_run_is_recorded_with_the_draws_of_a_run_of_its_own(scheduler: str, tmp_path: Path) -> None:
    text = TINY + "grid: {seed: 0-2}"
    rows, events = swept(text, tmp_path / "out", scheduler)
    assert [row["state"] for row in rows] == ["done"] * 3
    assert_all_recorded(text, tmp_path / "out")
    assert [row["folder"] for row in rows] == [str(tmp_path / "out" / f"seed={seed}") for seed in range(3)]
    assert all(row["figures"]["draws"] == 30 and row["worker_s"] >= row["seconds"] > 0 for row in rows)
    assert {event.kind for event in events} == {"began", "told", "done"}
    # Again, and with one more: only that is run.
    again, events = swept(TINY + "grid: {seed: 0-3}", tmp_path / "out", scheduler)
    assert {event.number for event in events} == {3}
    assert [row["figures"] for row in again[:3]] == [row["figures"] for row in rows]
    assert [row["worker_s"] for row in again[:3]] == [None] * 3


@pytest.mark.slow
def test_a_sweep_that_was_stopped_goes_on_with_the_same_draws(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed = []
    monkeypatch.setattr(resuming, "resume", lambda folder, **how: resumed.append(folder) or resume(folder, **how))
    text = LONG + "grid: {seed: 0-2}"
    rows, _ = swept(text, tmp_path / "out", scheduler, stopped=soon())
    assert {row["state"] for row in rows} == {"left"}
    halves = list((tmp_path / "out" / sweepwork.GOING).iterdir())
    assert len(halves) == 2  # the third had not begun
    assert not any(Recording(folder).progress["finished"] for folder in halves)
    rows, _ = swept(text, tmp_path / "out", scheduler)
    assert {row["state"] for row in rows} == {"done"}
    assert len(resumed) == 2
    assert_all_recorded(text, tmp_path / "out")


def test_a_run_that_fails_is_named_and_the_others_finish(scheduler: str, tmp_path: Path) -> None:
    text = TINY + "specs: [{target: banana, sampler: sgld, sampler.step_size: 1.0, name: far}, {name: near}]"
    rows, _ = swept(text, tmp_path / "out", scheduler)
    assert [row["state"] for row in rows] == ["failed", "done"], rows[0]["error"]
    assert rows[0]["error"].startswith("All 2 chains of sgld met values that are not finite")
    assert "try a smaller step_size" in rows[0]["error"]


def test_a_run_on_a_gpu_waits_for_a_worker_with_one_and_that_is_said(scheduler: str, tmp_path: Path) -> None:
    with Sweep(SweepSpec.from_text(TINY + "grid: {device: [cuda]}"), tmp_path, scheduler=scheduler) as sweep:
        waiting = next(sweep.events())
    assert (waiting.number, waiting.kind) == (-1, "waiting")
    assert "No worker of the cluster has a GPU to offer" in waiting.value


# --- the folder


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    spec = SweepSpec.from_text(TINY + "grid: {seed: 0-1}")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(BnnvizError, match="holds something that is no sweep"):
        Sweep(spec, tmp_path / "other")
    with Sweep(spec, tmp_path / "out"), pytest.raises(BnnvizError, match="A sweep is at work in"):
        Sweep(spec, tmp_path / "out")
    other = SweepSpec.from_text(TINY.replace("30", "31") + "grid: {seed: 1-2}")
    with pytest.raises(BnnvizError, match="holds another sweep: its run seed=1 has another draws"):
        Sweep(other, tmp_path / "out")
    (tmp_path / "out" / "sweep.json").write_text("[]")
    with pytest.raises(BnnvizError, match="cannot be read by this bnnviz"):
        Sweep(spec, tmp_path / "out")


# --- a worker that was taken for lost


class Told:
    """A report of nobody's; ``stopped`` is what the test says."""

    stopped = False

    def tell(self, value: object) -> None:
        pass


def place(out: Path) -> dict:
    (out / sweepwork.GOING).mkdir(parents=True)
    (out / sweepwork.TOKEN).write_text("here")
    return {"out": str(out), "token": "here", "held": None}


def test_a_silent_worker_that_comes_back_stops_and_leaves_the_recording_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweepwork, "_EVERY_S", 0.05)
    spec = next(iter(SweepSpec.from_text(LONG).runs.values()))
    where, ended = place(tmp_path / "out"), []

    def work() -> None:
        try:
            ended.append(sweepwork.record(Told(), "one", {"json": spec.to_json(), "attachment": None}, where))
        except job_worker.Stopped as stopped:
            ended.append(stopped)

    silent = threading.Thread(target=work)
    silent.start()
    going = tmp_path / "out" / sweepwork.GOING
    until(lambda: any(sweepwork.unfinished(going, "one")))
    row = sweepwork.record(Told(), "one", {"json": spec.to_json(), "attachment": None}, where)["row"]
    silent.join()
    assert isinstance(ended[0], job_worker.Stopped)
    assert row["error"] is None
    np.testing.assert_array_equal(draws(tmp_path / "out" / "one"), uninterrupted(spec))
    assert not list(going.iterdir())


def test_what_was_written_after_a_run_was_taken_over_is_nobodys(tmp_path: Path) -> None:
    going = tmp_path / sweepwork.GOING
    late = going / "one~aaaa"  # chunks and progress, but not what is written when a recording is made
    (late / "draws.zarr" / "posterior").mkdir(parents=True)
    mark = {"file": "checkpoint-9-0123456789ab", "step": 9, "size": 3, "sha256": "0" * 64}
    known = {"format": 1, "counts": [5], "alive": [True], "marks": [mark], "steps": 9, "finished": False}
    known |= {"spec": Spec("banana", chains=1).checked().to_json(), "changes": [], "phase": "sampling", "error": None}
    write_json(late / "progress.json", known | {"seconds": 1.0, "gradients": 9})
    assert Recording(late).progress["counts"] == [5]
    assert sweepwork.unfinished(going, "one") == []
    mine = sweepwork.take_over(going, "one")
    assert not mine.exists()
    assert not late.exists()


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


# --- on workers that do not see the folder


@pytest.mark.slow
def test_recordings_are_sent_where_the_disk_is_another_one(scheduler: str, tmp_path: Path) -> None:
    text = LONG + "grid: {seed: 0-1}"
    for stopped in (soon(), lambda: False):
        with Sweep(SweepSpec.from_text(text), tmp_path / "out", scheduler=scheduler) as sweep:
            (tmp_path / "out" / sweepwork.TOKEN).unlink()
            list(sweep.events(stopped))
            states = {row["state"] for row in sweep.rows()}
        halves = list((tmp_path / "out" / sweepwork.GOING).iterdir())
        assert (states, len(halves)) in (({"left"}, 2), ({"done"}, 0))
    assert_all_recorded(text, tmp_path / "out")


def archive(name: str, mode: int = 0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        made.writestr(info, "/etc/passwd")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        archive("../outside"),
        archive("/tmp/outside"),
        archive("a/../../outside"),
        archive("x", stat.S_IFLNK),
        archive("x", stat.S_IFIFO),
        archive("x", stat.S_IFCHR),
        b"no archive",
    ],
)
def test_an_archive_that_reaches_outside_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(BnnvizError, match="^What a worker sent (holds|is no recording)"):
        sweepwork.unpack(data, tmp_path / "in" / "one")
    assert not (tmp_path / "in" / "outside").exists()
    assert not (tmp_path / "in").exists()


# --- experiments


@pytest.mark.slow
def test_an_experiment_comes_to_the_same_on_two_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    specs = [tuple(SweepSpec.from_text(TINY + f"grid: {{seed: {seeds}}}").runs.values()) for seeds in ("0-2", "7-8")]
    cases = tuple(Case(f"case {number}", found, {}) for number, found in enumerate(specs))
    plain = Experiment("test-plain", "Plain", "Of tests.", ("ess_pc1",), cases)
    wells = replace(find("func-wells"), cases=find("func-wells").cases[:1])
    kept = replace(find("pdmp-fig1"), cases=tuple(brief(case) for case in find("pdmp-fig1").cases))
    with scheduling.Cluster(workers=2) as cluster:
        for experiment in (plain, wells, kept):
            ours = list(experiment.reproduce(3, cluster))
            shutil.rmtree(tmp_path / "home", ignore_errors=True)  # what is kept would be read
            theirs = list(experiment.reproduce(3))
            assert [(case.name, i) for case, i, _ in ours] == [(case.name, i) for case, i, _ in theirs]
            for (case, _, mine), (_, _, one) in zip(ours, theirs, strict=True):
                assert experiment.row(case, [mine]) == experiment.row(case, [one])
        again = list(kept.reproduce(3, cluster))  # read, not run
        assert [found["seconds"] for _, _, found in again] == [found["seconds"] for _, _, found in theirs]


def brief(case: Case) -> Case:
    return replace(case, specs=tuple(spec.replace(draws=20, warmup=5) for spec in case.specs))


def test_reproduce_takes_an_address_and_says_where_it_ran(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    case = Case("two seeds", tuple(SweepSpec.from_text(TINY + "grid: {seed: 0-1}").runs.values()), {})
    monkeypatch.setitem(EXPERIMENTS, "test-plain", Experiment("test-plain", "Plain", "", ("ess_pc1",), (case,)))
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "test-plain", "--json", "--scheduler", scheduler])
    told = capsys.readouterr()
    assert ended.value.code == 0
    assert "Plain: 2 runs, 2 at a time." in told.err
    assert json.loads(told.out)[0]["runs"] == 2
    assert results.records("test-plain")[0][0].device == "2 workers of a Dask cluster"


def test_a_run_of_an_experiment_that_fails_ends_it_with_a_sentence(scheduler: str) -> None:
    far = Experiment("test-far", "Far", "Of tests.", (), (Case("far", (Spec(target="nowhere"),), {}),))
    with (
        scheduling.Cluster(scheduler) as cluster,
        pytest.raises(BnnvizError, match="There is no target 'nowhere'"),
    ):
        list(far.reproduce(None, cluster))


# --- processes, some of which are killed


@pytest.fixture
def certificates(tmp_path: Path) -> dict[str, str]:
    """Return the environment that has Dask speak TLS, with a certificate that it signs itself."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=bnnviz", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    prefix = "DASK_DISTRIBUTED__COMM__TLS__"
    found = {f"{prefix}CA_FILE": str(certificate)}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        found |= {f"{prefix}{role}__KEY": str(key), f"{prefix}{role}__CERT": str(certificate)}
    return found | {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}


def command_line(*words: object, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bnnviz.cli", "sweep", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=os.environ | variables, **pipes)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_24_runs_on_two_workers_of_which_one_is_killed_half_way(tmp_path: Path) -> None:
    text = LONG.replace("400", "100") + "grid: {sampler: [hmc, bps], seed: 0-11}"
    out, killed, seen = tmp_path / "out", False, set()
    with Sweep(SweepSpec.from_text(text), out, workers=2) as sweep:
        kinds = []
        for event in sweep.events():
            kinds.append(event.kind)
            if event.kind == "began" and kinds.count("done") >= 12 and not killed:
                psutil.Process(worker_pid(event.value)).kill()
                killed = True
            if event.kind == "began":
                seen.add(event.value)
        rows = sweep.rows()
    assert killed
    assert "lost" in kinds
    assert len(seen) == 3  # two workers, and the one in the place of the killed one
    assert [row["state"] for row in rows] == ["done"] * 24
    assert_all_recorded(text, out)


def worker_pid(address: str) -> int:
    """Return the process that listens at a worker's address."""
    port = int(address.rpartition(":")[2])
    return next(c.pid for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_job_that_kills_its_workers_is_given_up_and_the_others_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "LOSSES", 2)
    with scheduling.Cluster(workers=1) as cluster:
        events = list(
            scheduling.Jobs(cluster, deadly, [scheduling.Job((kills,)) for kills in (False, True, False)]).events()
        )
    ended = {event.number: event for event in events if event.kind in ("done", "failed")}
    assert {number: event.kind for number, event in ended.items()} == {0: "done", 1: "failed", 2: "done"}
    assert ended[1].value.startswith("The worker running it was lost 2 times, so it is not started again")


def deadly(report: job_worker.Report, kills: bool) -> None:
    if kills:
        time.sleep(0.5)  # so that what it has said is sent
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ctrl_c_keeps_what_there_is_and_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(LONG.replace("400", "3000") + "grid: {seed: 0-3}")
    going = tmp_path / "out" / sweepwork.GOING
    words = (tmp_path / "sweep.yaml", "--out", tmp_path / "out", "--workers", 1)
    process = command_line(*words)
    until(lambda: any(Recording(path.parent).progress["counts"][0] for path in going.glob("*/progress.json")), 60)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "runs left; the same command goes on with them." in errors
    assert "left" in output
    (half,) = going.iterdir()
    assert 0 < Recording(half).progress["counts"][0] < 3000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_cluster_elsewhere_is_reached_by_tls_and_its_end_is_said(
    certificates: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "sweep.yaml").write_text(LONG + "grid: {seed: 0-1}")
    words = [tmp_path / "sweep.yaml", "--out", tmp_path / "out", "--json", "--scheduler"]
    with started(certificates, tmp_path) as (address, processes):
        process = command_line(*words, address, **certificates)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        rows = json.loads(output)
        assert [row["state"] for row in rows] == ["done", "done"]
        for row in rows:
            np.testing.assert_array_equal(draws(Path(row["folder"])), uninterrupted(Spec.from_json(row["spec"])))
        (tmp_path / "sweep.yaml").write_text(LONG.replace("400", "20000") + "grid: {seed: 7-8}")
        process = command_line(*words, address)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 2
        assert f"There is no Dask scheduler at {address}" in errors
        process = command_line(*words, address, **certificates)
        until(lambda: list((tmp_path / "out" / sweepwork.GOING).glob("*/progress.json")), 60)
        for one in processes:
            one.kill()
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 2
        assert f"The scheduler at {address} is gone; what is done is kept" in errors


@contextmanager
def started(variables: dict[str, str], folder: Path) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """Start a scheduler and a worker as somebody would on two machines; yield its address and both processes."""
    environment = os.environ | variables
    note = folder / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    scheduler = [*dask, "scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    worker = [
        *dask,
        "worker",
        "--nthreads",
        "1",
        "--preload",
        "bnnviz.engine.cluster.worker",
        "--no-dashboard",
        "--no-nanny",
    ]
    noted = ["--scheduler-file", str(note)]
    pipes = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([*scheduler, *noted], **pipes)]
    try:
        until(lambda: note.exists() and note.stat().st_size, 60)
        address = json.loads(note.read_text())["address"]
        processes.append(subprocess.Popen([*worker, address, "--protocol", "tls"], **pipes))
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
