"""Benchmarks: how rows, goals and suites are made, what is refused, and one short measurement in a browser."""

from __future__ import annotations

import json
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest
from conftest import workers_of

from bnnviz import targets
from bnnviz.benchmarks import Goal, Row, Suite, find, names, peers, suites
from bnnviz.benchmarks.browser import LabTab, PaintLog, chromium, script, window
from bnnviz.benchmarks.processes import Meter, cpu_seconds
from bnnviz.benchmarks.statistics import growth, quantile, quarters
from bnnviz.benchmarks.suite import Tell
from bnnviz.benchmarks.suites import live, pdmp, sgmcmc
from bnnviz.cli.main import main
from bnnviz.cli.output import until_interrupt
from bnnviz.errors import BnnvizError

KEYS = {"suite", "case", "metric", "value", "unit", "target", "ok"}


def run_here(line: str) -> int:
    """Run the command line in this process."""
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    return ended.value.code


# --- rows and goals


@pytest.mark.parametrize(
    ("sign", "value", "met"),
    [(">=", 3, True), (">=", 2.9, False), ("<", 3, False), ("<", 2.9, True), ("<=", 3, True), ("<=", 3.1, False)],
)
def test_a_goal_is_met_on_its_side_of_the_limit(sign: str, value: float, met: bool) -> None:
    assert Goal(sign, 3).met(value) is met


@pytest.mark.parametrize("sign", [">=", "<=", "<"])
def test_what_could_not_be_measured_meets_no_goal(sign: str) -> None:
    assert not Row("rate", math.nan, "1/s", Goal(sign, 3)).ok


def test_a_row_has_the_promised_keys_and_what_it_adds() -> None:
    row = Row("rate", 16.0, "1/s", Goal(">=", 15), {"peer": "none", "ratio": 1.5}).to_json("live", "frames")
    assert row == {
        "suite": "live", "case": "frames", "metric": "rate", "value": 16.0, "unit": "1/s", "target": ">= 15",
        "ok": True, "peer": "none", "ratio": 1.5,
    }  # fmt: skip
    assert Row("rate", 16.0, "1/s").to_json("live", "frames")["target"] == ""
    assert Row("rate", 16.0, "1/s").ok


# --- statistics


def test_quantile() -> None:
    assert quantile([1.0, 2.0, 3.0], 0.5) == 2.0
    assert math.isnan(quantile([], 0.5))


def test_quarters_take_each_value_by_its_moment() -> None:
    moments = [-1.0, 0.0, 24.9, 25.0, 60.0, 99.9, 100.0]
    parts = quarters(moments, range(7), 0.0, 100.0)
    assert [part.tolist() for part in parts] == [[1, 2], [3], [4], [5]]


def test_growth_compares_the_last_part_with_the_first() -> None:
    steady = quarters(np.linspace(0, 59.9, 600), np.full(600, 80.0), 0, 60)
    rising = quarters(np.linspace(0, 59.9, 600), np.linspace(80, 160, 600), 0, 60)
    assert growth(steady, 0.95) == 1.0
    assert growth(rising, 0.95) > 1.5
    assert math.isnan(growth([[1.0], []], 0.5))


def test_rates_and_latencies_come_from_what_was_seen() -> None:
    painted = np.arange(0.0, 10.0, 0.05) + 100.0
    frames = [(at - 0.06, at - 0.04, at) for at in painted]
    seen = PaintLog(110.0, frames, {"trajectory": list(painted), "acf": list(painted[::20])})
    rows = {row.metric: row for row in [*live._rates(seen, 10.0), *live._latencies(seen, 10.0, 0.95, live.LATE)]}
    assert rows["rate_trajectory"].value == pytest.approx(20)
    assert rows["rate_trajectory"].ok
    assert rows["rate_acf"].value == pytest.approx(1)
    assert not rows["rate_acf"].ok
    assert rows["latency_p95"].value == pytest.approx(60)
    assert rows["latency_growth"].value == pytest.approx(1)
    assert rows["browser_p50"].value == pytest.approx(40)


def test_what_was_seen_before_a_moment_is_left_out() -> None:
    seen = PaintLog(4.0, [(0.9, 0.9, 1.0), (2.9, 2.9, 3.0)], {"trace": [1.0, 3.0]}).since(2.0)
    assert seen.frames == [(2.9, 2.9, 3.0)]
    assert seen.paints == {"trace": [3.0]}


def test_the_meter_tells_whose_time_it_was() -> None:
    here = psutil.Process()
    meter, before = Meter({"here": lambda: [here]}), cpu_seconds(here)
    while cpu_seconds(here) - before < 0.2:
        sum(range(10_000))
    used = meter.read()
    assert set(used) == {"here", "others"}
    assert 0.2 <= used["here"] < 2


def test_the_sampler_cost_is_the_median_ratio_of_neighbouring_windows() -> None:
    # The machine is twice as slow in the second round, and nothing can be said of the third.
    looks = {"looked_at": (96.0, 48.0, 500.0), "background": (120.0, 60.0, 60.0), "only_painting": (100.0, 50.0, 1.0)}
    rounds = [{name: live._PageRate(values[i], 10.0) for name, values in looks.items()} for i in range(3)]
    rows = {row.metric: row for row in live._compare(rounds)}
    assert rows["ratio_to_background"].value == rows["ratio_to_background"].more["ratio"] == pytest.approx(0.8)
    assert not rows["ratio_to_background"].ok
    assert rows["ratio_to_only_painting"].value == pytest.approx(0.96)
    assert rows["ratio_to_only_painting"].ok
    assert rows["steps_per_cpu_s_looked_at"].value == 96.0


def test_looks_take_turns_and_only_the_end_of_each_is_measured() -> None:
    turns = live._Windows(100.0, each_s=live.TURN_S + live.WINDOW_S)
    assert turns.count(0.1) == 3, "one round at least"
    assert turns.count(3.5 * 3 * turns.each_s) == 9, "whole rounds only"
    assert turns.measured(2) == pytest.approx((100.0 + 2 * turns.each_s + live.TURN_S, 100.0 + 3 * turns.each_s))
    # Ten frames a second while it is looked at, in two rounds; what is painted in other looks does not count.
    painted = np.arange(100.0, 100.0 + 6 * turns.each_s, 0.1)
    looked = [at for at in painted if int((at - 100.0) / turns.each_s) % 3 in (0, 1)]
    seen = PaintLog(200.0, [(at, at, at) for at in looked], {})
    assert turns.rate(seen, 6) == pytest.approx(10, rel=0.05)


# --- suites


def test_every_suite_is_found_under_its_name_and_has_cases() -> None:
    assert "live" in names()
    for name in names():
        suite = find(name)
        assert suite.name == name
        assert suite.cases


def test_a_suite_runs_all_its_cases_or_the_one_asked_for() -> None:
    def case(seconds: float, tell: Tell) -> Iterator[Row]:
        tell("busy")
        yield Row("seconds", seconds, "s")

    said: list[str] = []
    suite = Suite("some", "Some.", {"a": case, "b": case})
    assert [row["case"] for row in suite.run(None, 2.0, said.append)] == ["a", "b"]
    (row,) = suite.run("b", 3.0, said.append)
    assert (row["suite"], row["case"], row["value"]) == ("some", "b", 3.0)
    assert said == ["busy"] * 3
    with pytest.raises(BnnvizError, match="choose one of a, b"):
        list(suite.run("c", 1.0, said.append))


def test_a_suite_that_lacks_a_package_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    for module in ("bnnviz.benchmarks.processes", "bnnviz.benchmarks.browser", f"{suites.__name__}.live"):
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(BnnvizError, match="needs psutil; install it with"):
        find("live")


# --- the command line


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("bench", "SUITE"),
        ("bench nope", "choose one of batches, class, cuda, images"),
        ("bench live --case nope", "choose one of frames, slow_browser, sampler_cost, startup"),
        ("bench live --seconds 0", "--seconds"),
    ],
)
def test_bad_input_exits_2_with_one_sentence(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here(line) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.startswith("bnnviz: ")
    assert err.count("\n") == 1


def test_without_a_browser_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CHROMIUM", "no-such-browser")
    assert run_here("bench live --json") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "apt install chromium" in err
    monkeypatch.setenv("CHROMIUM", sys.executable)
    monkeypatch.setitem(sys.modules, "playwright", None)
    assert run_here("bench live --case startup") == 2
    assert "needs playwright" in capsys.readouterr().err


def test_a_table_or_one_list(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def case(seconds: float, tell: Tell) -> Iterator[Row]:
        yield Row("fast", 20.0, "1/s", Goal(">=", 15))
        yield Row("slow", 10.0, "1/s", Goal(">=", 15))
        yield Row("unknown", math.nan, "ms")

    monkeypatch.setattr(live, "SUITE", Suite("live", "Live.", {"some": case}))
    assert run_here("bench live") == 0
    table = capsys.readouterr().out
    assert all(word in table for word in ("fast", "met", "slow", "missed", ">= 15", "unknown"))
    assert run_here("bench live --json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["ok"] for row in rows] == [True, False, True]
    assert rows[2]["value"] is None
    assert all(row.keys() >= KEYS for row in rows)


# --- in a browser


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.usefixtures("chromium")
def test_startup_is_measured_and_the_page_has_no_torch() -> None:
    command = [sys.executable, "-m", "bnnviz.cli", "bench", "live", "--case", "startup", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert result.returncode == 0, result.stderr
    rows = {row["metric"]: row for row in json.loads(result.stdout)}
    assert all(row.keys() >= KEYS for row in rows.values())
    assert rows["torch_in_page_process"]["ok"]
    assert 0 < rows["play_to_first_frame"]["value"] < 30
    assert 0 < rows["serve_to_page"]["value"] < rows["serve_to_first_segment"]["value"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_got_lost_still_ends_it(number: signal.Signals) -> None:
    """Python drops what is raised where an object ends."""

    class Ends:
        def __del__(self) -> None:
            signal.raise_signal(number)

    def rows():
        yield {"case": "first"}
        Ends()
        yield {"case": "second"}

    seen, before = [], signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        seen.extend(row["case"] for row in until_interrupt(rows()))
    assert signal.getsignal(number) is before


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.usefixtures("chromium")
@pytest.mark.timeout(400)
def test_ctrl_c_leaves_no_process_behind() -> None:
    command = [sys.executable, "-m", "bnnviz.cli", "bench", "live", "--case", "frames"]
    bench = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 60
    while not workers_of(psutil.Process(bench.pid)):
        assert time.monotonic() < until, "no worker was started"
        time.sleep(0.2)
    started = {process for process in psutil.Process(bench.pid).children(recursive=True) if process.is_running()}
    # As a terminal does: to everything in the group.
    os.killpg(bench.pid, signal.SIGINT)
    # That nothing is left is what counts here, not how soon: on a busy machine each part takes its time.
    out, err = bench.communicate(timeout=150)
    assert (bench.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    _, alive = psutil.wait_procs(started, timeout=10)
    assert not alive


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.usefixtures("chromium")
def test_a_page_is_painted_when_its_figures_are_seen_and_its_controls_are_there() -> None:
    """Not when Bokeh has done with the figures: they may be nowhere yet, or under the loader."""
    page = """<div id="home"></div><div id="loader" style="position: fixed; inset: 0"></div><script>
      const host = document.createElement("div")
      host.attachShadow({mode: "open"}).innerHTML = "<div style='width: 300px; height: 200px'></div>"
      const figure = {type: "Figure"}, view = {el: host.shadowRoot.firstChild, finished: false}
      view.has_finished = () => view.finished
      window.Bokeh = {documents: [{is_idle: false, _all_models: new Map([[1, figure]])}], index: {find_one: () => view}}
    </script>"""
    steps = ["0", "view.finished = true", "home.append(host)", "loader.remove()", "Bokeh.documents[0].is_idle = true"]
    with chromium() as browser, browser.tab() as lab:
        lab.page.set_content(page)
        seen = []
        for step in steps:
            lab.page.evaluate(f"() => {{ {step} }}")
            seen.append((lab.page.evaluate(script("figuresSeen")), lab.page.evaluate(script("painted"))))
        assert seen == [(False, False)] * 3 + [(True, False), (True, True)]
        lab.page.evaluate("() => { home.style.display = 'none' }")
        assert not lab.page.evaluate(script("painted"))


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.usefixtures("chromium")
def test_the_probe_counts_frames_and_figures() -> None:
    page = """<button onclick="for (const ms of [50, 200]) { setTimeout(frame, ms, true) }">Play</button><script>
      class Signal { slots = []; connect(slot) { this.slots.push(slot) } emit() { this.slots.forEach((s) => s()) } }
      const source = (data, callbacks) => ({type: "ColumnDataSource", data, js_property_callbacks: callbacks,
        properties: {data: {change: new Signal()}}})
      const sent = source({number: [0], at: [0]}, {"change:data": []}), painted = source({number: [0]}, {})
      const drawn = source({x: [0]}, {})
      const figure = {type: "Figure", name: "some", tags: [], renderers: [{data_source: drawn}, {data_source: drawn}]}
      const view = {repainted: new Signal()}
      const models = new Map([painted, sent, drawn, figure].map((model, i) => [i, model]))
      window.Bokeh = {documents: [{_all_models: models}], index: {get_one: () => view}}
      function frame(fresh) {
        sent.data = {number: [1], at: [Date.now() / 1000 - 0.1]}
        if (fresh) { drawn.properties.data.change.emit() }
        sent.properties.data.change.emit()
        view.repainted.emit()
      }
    </script>"""
    with chromium() as browser, browser.tab() as lab:
        assert isinstance(lab, LabTab)
        lab.page.set_content(page)
        lab.probe(delay_s=0.05)
        lab.page.evaluate(
            "async () => { for (const fresh of [true, false, true]) { frame(fresh);"
            " await new Promise((done) => setTimeout(done, 200)) } }"
        )
        seen = lab.read()
        # What was sent before the click, a tenth of a second before it came, is no answer to it.
        assert 0.2 <= lab.seconds_from_play() < 1
    assert len(seen.frames) == 3
    assert len(seen.paints["some"]) == 2
    for sent, came, painted in seen.frames:
        assert came - sent == pytest.approx(0.1, abs=0.05)
        assert painted - came >= 0.05


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.usefixtures("chromium")
def test_a_window_that_is_left_alone_takes_its_turns() -> None:
    page = """<script>
      window.Bokeh = {documents: [{_all_models: new Map()}]}
      window.seen = []
      document.addEventListener("visibilitychange", () => seen.push([Date.now() / 1000, document.hidden]))
    </script>"""
    with window() as browser:
        size = browser.lab.page.evaluate("[innerWidth, innerHeight]")
        browser.lab.page.set_content(page)
        began = time.time() + 1
        browser.lab.take_turns(live.LOOKS, 10.0, [], began, 0.5)
        before = browser.lab
        with browser.left_alone():
            assert not before.page.context.browser.is_connected()
            time.sleep(4.2)
        seen = browser.lab.page.evaluate("seen")
        family = browser.processes()
    assert size == pytest.approx([1400, 900], abs=20)
    assert [hidden for _, hidden in seen[:6]] == [False, True, True] * 2
    assert [at - began for at, _ in seen[:4]] == pytest.approx([0, 0.5, 1.0, 1.5], abs=0.2)
    assert not any(process.is_running() for process in family)


def test_the_samplers_figures_are_of_one_run() -> None:
    from bnnviz.benchmarks.suites import pdmp

    told: list[str] = []
    rows = {row.metric: row for row in pdmp._measured(pdmp.Setup("banana", "bps", "grid", 4), 0.5, told.append)}
    assert set(rows) == {f"bps_grid_4_{what}" for what in ("events", "evaluations", "path", "ess")}
    assert rows["bps_grid_4_evaluations"].value > rows["bps_grid_4_events"].value > 0
    assert rows["bps_grid_4_path"].value > 0
    assert told == ["bps, grid, 4 chains on banana."]
    assert not list(pdmp._measured(pdmp.Setup("toy_a", "bps", "grid", 4096), 0.5, told.append)), (
        "too large to be measured"
    )


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(peers.importlib, "import_module", missing)
    said: list[str] = []
    assert list(peers.measure(targets.Gaussian(), 0.1, said.append)) == []
    assert len(said) == 2 and all("pip install 'bnnviz[bench]'" in line for line in said)
    assert list(peers.measure(targets.Banana(), 0.1, said.append)) == []
    assert len(said) == 2


def test_rows_stand_beside_their_peers() -> None:
    peer = peers.Peer("pdmp-jax", "bps", 100.0, 20.0)
    row = pdmp._beside(Row("bps_grid_4_events", 250.0, "1/s", more={"chains": 4}), peer)
    assert row.more == {"chains": 4, "peer": "pdmp-jax", "ratio": 2.5, "note": "2.5 times one chain of pdmp-jax"}
    assert pdmp._beside(Row("bps_grid_4_ess", 10.0, "1/s"), peer).more["ratio"] == 0.5
    assert pdmp._beside(Row("bps_grid_4_path", 10.0, "1/s"), peer).more == {}
    assert pdmp._beside(row, None) is row


def test_moves_are_of_all_chains_and_stand_beside_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sgmcmc, "KERNELS", ("eager", "eager"))
    told: list[str] = []
    rows = list(sgmcmc._measured("sghmc", 16, 0.7, told.append))
    assert [row.metric for row in rows] == ["sghmc_16_eager"] * 2
    for row in rows:
        assert row.value > 0
        assert row.more["least"] <= row.value <= row.more["most"]
    assert len(told) == 2

    run = sgmcmc._begun("sgld", 1, "eager")
    run.spec = run.spec.replace(kernel="compiled")
    row = sgmcmc._row("sgld", run, 15_000.0, 3_000.0, np.array([14_000.0, 16_000.0]))
    assert row.ok
    assert str(row.goal) == ">= 14000"
    assert row.more["ratio"] == pytest.approx(15 / 70)
    assert row.more["kernel"] == "eager", "the row says what it was measured with"
    assert "5 times eager" in row.more["note"]


def test_every_goal_is_of_a_known_rate() -> None:
    measured = {(sampler, chains) for sampler, numbers in sgmcmc.CHAINS.items() for chains in numbers}
    assert set(sgmcmc.GOALS) <= set(sgmcmc.KNOWN) == measured


def test_moves_of_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "blackjax", None)
    said: list[str] = []
    assert list(peers.moves("sgld", sgmcmc.points(), 32, 50, 1e-4, (1,), 0.1, said.append)) == []
    assert "pip install 'bnnviz[bench]'" in said[0]
