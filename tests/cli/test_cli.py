"""The command line: what it prints where, what it refuses and how, what Ctrl-C leaves behind."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from bnnviz.cli import sample
from bnnviz.engine.recording import reader
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec
from tests.driven import run_here, until

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("list", "sample", "serve")
SUMMARY = {
    "target", "sampler", "settings", "dim", "chains", "draws", "seed", "device", "seconds", "cpu_seconds",
    "grad_evals", "events", "ess_min", "rhat_max", "ess_tail_min", "ess_pc1", "ess_energy", "ess_per_s",
    "ess_per_million_grads",
}  # fmt: skip


def start(line: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bnnviz", *shlex.split(line)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options)


def run(line: str, **options: Any) -> tuple[int, str, str]:
    process = start(line, **options)
    out, err = process.communicate(timeout=150)
    return process.returncode, out, err


def asked(monkeypatch: pytest.MonkeyPatch, line: str) -> Spec:
    """Return the spec that a ``sample`` line asks for, without running it."""
    specs: list[Spec] = []
    monkeypatch.setattr(sample, "_sample", lambda spec, *_: specs.append(spec) or 0)
    assert run_here(f"sample {line}") == 0
    return specs[0]


# --- what is always there


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the command line check its input, in a folder with a spec, and do nothing more."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    (tmp_path / "spec.json").write_text('{"target": "gaussian"}')
    (tmp_path / "houses.csv").write_text("area,price\n" + "".join(f"{i},{i}.5\n" for i in range(20)))
    monkeypatch.setattr(sample, "_sample", lambda spec, *_: 0)
    monkeypatch.setattr("bnnviz.cli.serve.serve_dashboard", lambda **options: None)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("nothing_runs")
def test_examples_of_the_help_are_accepted(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here(f"{command} --help") == 0
    examples = capsys.readouterr().out.partition("Examples:")[2]
    lines = re.findall(r"^ *bnnviz ((?:list|sample|serve)\b.*?)(?: +[#>].*| *)$", examples, re.MULTILINE)
    assert lines
    for line in lines:
        for name in re.findall(r"--start ([\w-]+)", line):
            RecordingWriter(ViewedRun(Spec(target="gaussian", draws=5)), reader.new_place(name))
        assert run_here(line) == 0, line


# --- bad input


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "Missing command"),
        ("nonsense", "nonsense"),
        ("list", "targets,samplers,data,papers"),
        ("list samplers nope", "'nope'"),
        ("sample", "--target"),
        ("sample --nonsense", "--nonsense"),
        ("sample --target nope", "target"),
        ("sample --target gaussian --sampler nope", "sampler"),
        ("sample --target gaussian --draws 0", "draws"),
        ("sample --target gaussian --draws many", "--draws"),
        ("sample --target gaussian --set refresh_rate", "key=value"),
        ("sample --target gaussian --set nope=1", "'nope'"),
        ("sample --target gaussian --set target.refresh_rate=1", "refresh_rate"),
        ("sample --data toy_c --set points=[[0,1", "list of rows"),
        ("sample --target gaussian --out no/such/folder/run", "no/such/folder"),
        ("sample --target gaussian --out pyproject.toml", "exists already"),
        ("sample --target gaussian --out /proc/run", "Nothing can be written to /proc"),
        ("sample --target gaussian --record /proc/run", "Nothing can be written to /proc"),
        ("sample /dev/zero", "more than 10,000,000 letters"),
        ("sweep /dev/zero --out runs", "more than 10,000,000 letters"),
        ("sample --target gaussian --draws 1000000 --chains 4096 --set size=2000", "The draws take 32768.0 GB"),
        ("sample no-such-file.json", "no-such-file.json"),
        ("sample pyproject.toml", "not JSON"),
        ("serve --port 70000", "--port"),
        ("serve --prefix lab", "--prefix"),
        ("serve --prefix /a/../b?x", "--prefix"),
        ("serve --port 5061", "Browsers open no page at port 5061"),
        ("serve --address 192.0.2.1", "192.0.2.1"),
    ],
)
def test_bad_input_exits_2_with_one_sentence(
    line: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert run_here(line) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.startswith("bnnviz: ")
    assert err.count("\n") == 1
    assert err.endswith(".\n")


@pytest.mark.parametrize("command", ["sample {}", "sweep {} --out runs"])
@pytest.mark.parametrize(
    "text",
    [
        *("[]", "{", '{"target": "gaussian", "nope": 1}', '{"sampler": "bps"}', "\0", "[" * 100_000 + "]" * 100_000),
        *(f'{{"target": "gaussian", "seed": {"9" * digits}}}' for digits in (400, 5000)),
        *('{"a":' * 900 + "1" + "}" * 900, '{"target": "\\ud800"}', '{"target": {"a": [[[]]]}}', "null"),
    ],
    ids=lambda text: text[:20],
)
def test_a_spec_that_is_none_is_refused(
    text: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "spec.json"
    file.write_text(text)
    assert run_here(command.format(file)) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert len(err) < 1000


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(["a0: &a0 [1, 1]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))]),
        "base: &a {x: *a}",
        'base: {target: !!python/object/apply:os.system ["true"]}',
        "? [1]\n: 2",
        "base: {seed: " + "9" * 5000 + "}",
    ],
)
def test_yaml_has_no_tags_and_no_bombs(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(text)
    assert run_here(f"sweep {file} --out {tmp_path / 'runs'}") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


# --- what a line asks for


def test_options_become_a_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "-t gaussian -s bps --draws 7 --chains 3 --seed 5 --device cpu --set refresh_rate=.5"
    spec = asked(monkeypatch, f"{line} --set run.warmup=9")
    assert (spec.target, spec.sampler, spec.draws, spec.chains) == ("gaussian", "bps", 7, 3)
    assert (spec.seed, spec.device, spec.warmup, spec.settings["refresh_rate"]) == (5, "cpu", 9, 0.5)
    prefixed = line.replace(" refresh_rate", " sampler.refresh_rate")
    assert asked(monkeypatch, f"{prefixed} --set warmup=9") == spec


# --- sample


@pytest.mark.slow
def test_sample_json_is_one_object_with_everything_promised() -> None:
    line = "sample --target gaussian --sampler bps --chains 8 --draws 100 --seed 1 --json"
    code, out, err = run(line)
    assert code == 0, err
    summary = json.loads(out)
    assert set(summary) >= SUMMARY | {"mean", "mean_se", "cov", "cov_se"}
    assert (summary["chains"], summary["draws"], summary["seed"], summary["dim"]) == (8, 100, 1, 2)
    assert np.shape(summary["cov"]) == (2, 2)
    again = json.loads(run(line)[1])
    assert (again["mean"], again["cov"]) == (summary["mean"], summary["cov"])


@pytest.mark.slow
def test_ctrl_c_keeps_the_draws_made_so_far(tmp_path: Path) -> None:
    place = tmp_path / "run.nc"
    process = start(f"sample --target gaussian --draws 1000000 --set run.warmup=0 --out {place} --json")
    watched = psutil.Process(process.pid)
    until = time.monotonic() + 60
    # Loading torch takes some seconds of its own time; what else the machine does must not count.
    while time.monotonic() < until and sum(watched.cpu_times()[:2]) < 7:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert 0 < json.loads(out)["draws"] < 1_000_000
    assert place.exists()
    assert re.search(r"^bnnviz: stopped after \d+ of 1000000 draws .*run\.nc\.$", err, re.MULTILINE)


# --- serve


@pytest.mark.slow
@pytest.mark.parametrize("line", ["list samplers", "sample --target banana --draws 100000", "recordings list"])
@pytest.mark.parametrize("after", [0.4, 1.0, 2.0])
def test_ctrl_c_in_the_first_seconds_prints_no_traceback(line: str, after: float) -> None:
    process = start(line, start_new_session=True)
    time.sleep(after)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err


def test_serve_answers_without_torch_and_ends_on_ctrl_c(serve: Callable[..., Any]) -> None:
    served = serve()
    with urllib.request.urlopen(served.url, timeout=30) as answer:
        assert answer.status == 200
    root = served.url.removesuffix("/app")
    with urllib.request.urlopen(root, timeout=30) as answer:
        assert answer.url == served.url
    loaded = {part.path for part in served.process.memory_maps()}
    assert not [path for path in loaded if "libtorch" in path]
    busy = run(f"serve --no-show --port {root.rpartition(':')[2]}")
    assert busy[0] == 2
    assert "choose another" in busy[2]
    family = [served.process, *served.process.children(recursive=True)]
    # A terminal sends Ctrl-C to the workers as well.
    for process in family:
        process.send_signal(signal.SIGINT)
    # A worker that still reads torch on a busy machine is waited for.
    _, alive = psutil.wait_procs(family, timeout=120)
    assert not alive
    assert f"The dashboard is at {served.url} " in served.log.read_text()
    assert "Traceback" not in served.log.read_text()


@pytest.mark.parametrize(
    ("options", "token", "named"),
    [
        ("--no-token --address 0.0.0.0", "", "0.0.0.0"),
        ("--no-token --password", "", "--password"),
        ("", "short", "BNNVIZ_TOKEN"),
    ],
)
def test_serve_lets_nobody_in_by_mistake(
    options: str, token: str, named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BNNVIZ_TOKEN", token)
    assert run_here(f"serve --no-show {options}") == 2
    assert named in capsys.readouterr().err


@pytest.mark.slow
def test_serve_prints_the_address_with_the_token_and_answers_no_other(serve: Callable[..., Any]) -> None:
    served = serve(options=())
    until(lambda: "The dashboard is at" in served.log.read_text(), 30)
    printed = re.search(r"The dashboard is at (\S+) ", served.log.read_text())[1]
    assert printed.startswith(f"{served.url}?token=")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(served.url, timeout=30)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(f"{printed}&page=race", timeout=30) as answer:
        assert answer.url == f"{served.url}?page=race"
        assert "frame-ancestors 'self'" in answer.headers["Content-Security-Policy"]
    with browser.open(served.url, timeout=30) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("mib", [60, 300, 575, 840])
def test_too_little_address_space_is_one_line(mib: int) -> None:
    resource = pytest.importorskip("resource")
    pipe = start(
        "sample --target gaussian --sampler bps --draws 4",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20)),
    )
    _, error = pipe.communicate(timeout=60)
    assert pipe.returncode == 1
    assert f"{mib} MiB of address space" in error
    assert "Traceback" not in error
