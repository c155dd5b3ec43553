"""Sweeps: each run becomes a recording with its own draws, also when workers are killed and the sweep is run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from bnnviz.cli.main import main
from bnnviz.engine import sweep
from bnnviz.engine.cluster import local_cluster
from bnnviz.engine.recording.reader import PROGRESS, Recording
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.experiments import EXPERIMENTS, Case, Experiment
from bnnviz.specs.run import Spec
from tests.driven import finished, until

distributed = pytest.importorskip("distributed")
pytest.importorskip("zarr")

TINY = {"target": "gaussian", "sampler": "hmc", "chains": 2, "draws": 30, "warmup": 5}


@pytest.fixture(scope="module")
def threads() -> Iterator[distributed.LocalCluster]:
    """A cluster whose two workers are threads of this process, without TLS."""
    options = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "protocol": "tcp", "host": "127.0.0.1"}
    with distributed.LocalCluster(**options, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster


@pytest.fixture
def client(threads: distributed.LocalCluster) -> Iterator[distributed.Client]:
    with distributed.Client(threads) as made:
        yield made


def seeds(count: int, **base: object) -> dict[str, Spec]:
    return sweep.specs_of({"base": TINY | base, "grid": {"seed": list(range(count))}})


def uninterrupted(spec: Spec) -> np.ndarray:
    run = Run(spec)
    finished(run)
    return run.draws


def assert_all_recorded(specs: dict[str, Spec], out: Path) -> None:
    for name, spec in specs.items():
        assert sweep.row(name, spec, out)["state"] == "done"
        np.testing.assert_array_equal(Recording(out / name).read_draws(), uninterrupted(spec))
    assert {path.name for path in out.iterdir()} == set(specs)


# --- the grid


def test_a_grid_gives_each_combination_and_each_run_a_name_of_its_own_content() -> None:
    grid = {"sampler": ["hmc", "bps"], "target.bend": [0.5, 1], "seed": [3, 4]}
    base = {"target": "banana", "sampler.start": "random"}
    specs = sweep.specs_of({"base": base, "grid": grid})
    assert len(specs) == 8
    found = {(s.sampler, s.target_settings["bend"], s.seed, s.settings["start"]) for s in specs.values()}
    assert found == {(a, b, c, "random") for a in grid["sampler"] for b in grid["target.bend"] for c in grid["seed"]}
    longer = sweep.specs_of({"base": base, "grid": grid | {"seed": [3, 4, 5]}})
    assert specs.keys() <= longer.keys()
    other = sweep.specs_of({"base": {"target": "banana", "draws": 7}, "grid": grid})
    assert not specs.keys() & other.keys()


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "settings"),
        ({"runs": []}, "runs"),
        ({"base": 3}, "base"),
        ({"grid": {"seed": []}}, "seed"),
        ({"grid": {"seed": "0-2"}}, "seed"),
        ({"grid": {"seed": list(range(20_000))}}, "grid"),
        ({"base": {"draws": None}}, "draws"),
        ({"base": {"target": "nowhere"}}, "target"),
        ({"base": {"run.seed": 1}}, "run.seed"),
        ({"base": {"target.bent": 1}}, "bent"),
    ],
)
def test_a_sweep_that_cannot_be_run_is_refused_by_its_field(value: object, field: str) -> None:
    with pytest.raises(BnnvizError) as refused:
        sweep.specs_of(value)
    assert refused.value.field == field


# --- runs


@pytest.mark.slow
def test_runs_are_recorded_and_a_longer_sweep_runs_only_what_is_new(client: distributed.Client, tmp_path: Path) -> None:
    assert sorted(sweep.run_sweep(client, seeds(2), tmp_path)) == [(name, None) for name in sorted(seeds(2))]
    assert_all_recorded(seeds(2), tmp_path)
    new = seeds(3).keys() - seeds(2).keys()
    assert [name for name, _ in sweep.run_sweep(client, seeds(3), tmp_path)] == list(new)
    assert_all_recorded(seeds(3), tmp_path)


def test_a_run_that_fails_is_named_and_the_others_finish(client: distributed.Client, tmp_path: Path) -> None:
    grid = {"target": ["banana", "gaussian"]}
    specs = sweep.specs_of({"base": TINY | {"sampler": "sgld", "sampler.step_size": 1.0}, "grid": grid})
    list(sweep.run_sweep(client, specs, tmp_path))
    rows = [sweep.row(name, spec, tmp_path) for name, spec in specs.items()]
    assert [row["state"] for row in rows] == ["failed", "done"], rows
    assert "step_size" in rows[0]["error"]


def test_a_run_on_a_gpu_needs_a_worker_that_offers_one(client: distributed.Client, tmp_path: Path) -> None:
    with pytest.raises(BnnvizError, match="GPU=1"):
        list(sweep.run_sweep(client, seeds(1, device="cuda"), tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_worker_costs_no_run_and_changes_no_draw(tmp_path: Path) -> None:
    specs, killed = seeds(6, draws=3000), False
    with local_cluster.connected(workers=1) as client:
        for _ in sweep.run_sweep(client, specs, tmp_path):
            if not killed:
                until(lambda: len(list(tmp_path.glob(f"*/{PROGRESS}"))) >= 2)
                psutil.Process(next(iter(client.run(os.getpid).values()))).kill()
                killed = True
    assert_all_recorded(specs, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_that_was_killed_or_interrupted_is_resumed_with_the_same_draws(tmp_path: Path) -> None:
    out, text = tmp_path / "out", {"base": TINY | {"draws": 3000}, "grid": {"seed": [0, 1]}}
    (tmp_path / "sweep.yaml").write_text(json.dumps(text))
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        process = command_line(tmp_path / "sweep.yaml", "--out", out, "--workers", 1)
        until(lambda: any(Recording(p.parent).progress["counts"][0] for p in out.glob(f"*/{PROGRESS}")))
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == code, errors
    output, errors = command_line(tmp_path / "sweep.yaml", "--out", out, "--workers", 1, "--json").communicate()
    assert [row["state"] for row in json.loads(output)] == ["done", "done"], errors
    assert_all_recorded(sweep.specs_of(text), out)


def command_line(*words: object, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bnnviz", "sweep", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=os.environ | variables, **pipes)


# --- a cluster elsewhere


@pytest.fixture
def certificates(tmp_path: Path) -> dict[str, str]:
    """Return the environment with which Dask uses TLS, with a self-signed certificate."""
    security = distributed.Security.temporary()
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    key.write_text(security.tls_client_key)
    certificate.write_text(security.tls_client_cert)
    prefix = "DASK_DISTRIBUTED__COMM__TLS__"
    found = {f"{prefix}CA_FILE": str(certificate)}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        found |= {f"{prefix}{role}__KEY": str(key), f"{prefix}{role}__CERT": str(certificate)}
    return found | {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}


@contextmanager
def started(variables: dict[str, str], note: Path) -> Iterator[str]:
    """Start a scheduler and a worker as on two machines, and yield the scheduler's address."""
    dask = [sys.executable, "-m", "dask"]
    scheduler = [*dask, "scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    worker = [*dask, "worker", "--nthreads", "1", "--preload", local_cluster.PRELOAD, "--no-dashboard", "--no-nanny"]
    pipes = {"env": os.environ | variables, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([*scheduler, "--scheduler-file", str(note)], **pipes)]
    try:
        until(lambda: note.exists() and note.stat().st_size)
        processes.append(subprocess.Popen([*worker, "--scheduler-file", str(note), "--protocol", "tls"], **pipes))
        yield json.loads(note.read_text())["address"]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_cluster_elsewhere_is_used_with_dasks_certificates_and_refuses_whoever_has_none(
    certificates: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "sweep.yaml").write_text(json.dumps({"base": TINY, "grid": {"seed": [0, 1]}}))
    note, out = tmp_path / "scheduler.json", tmp_path / "out"
    words = [tmp_path / "sweep.yaml", "--out", out, "--json", "--scheduler"]
    with started(certificates, note) as address:
        _, errors = command_line(*words, address).communicate(timeout=120)
        assert f"There is no Dask scheduler at {address}" in errors
        output, errors = command_line(*words, note, **certificates).communicate(timeout=120)
        assert [row["state"] for row in json.loads(output)] == ["done", "done"], errors
    assert_all_recorded(sweep.specs_of({"base": TINY, "grid": {"seed": [0, 1]}}), out)


# --- experiments


def test_reproduce_takes_an_address(
    threads: distributed.LocalCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    case = Case("two seeds", tuple(seeds(2).values()), {})
    monkeypatch.setitem(EXPERIMENTS, "test-plain", Experiment("test-plain", "Plain", "", ("ess_pc1",), (case,)))
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "test-plain", "--json", "--insecure", "--scheduler", threads.scheduler_address])
    reported = capsys.readouterr()
    assert ended.value.code == 0, reported.err
    assert json.loads(reported.out)[0]["runs"] == 2
