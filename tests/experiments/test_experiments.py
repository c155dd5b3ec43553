"""Experiments of the papers: what they run, the rows they give, and the figure of a sweep."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

from bnnviz import experiments
from bnnviz.cli.main import main
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.experiments import Case, Experiment, published
from bnnviz.experiments.experiment import _band
from bnnviz.specs.run import Spec

SWEEPS = experiments.find("pdmp-sweeps")


@pytest.fixture(autouse=True)
def nothing_is_kept_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have what is reproduced kept in a folder of the test's own."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))


def run_here(line: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    return ended.value.code


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """A sweep of two settings on a network that takes no time, under the name of the real one."""

    def case(sampler: str, setting: str, value: float, **fixed) -> Case:
        target = {"data": "toy_c", "hidden": "2", "points": [[-0.2, 0.1], [0.2, 0.3]]}
        chosen = {"mode_steps": 20, setting: value} | fixed
        specs = tuple(Spec("network", target, sampler, chosen, 2, 8, 2, seed) for seed in range(2))
        at = {"sampler": sampler, "setting": setting, "value": value}
        return Case(f"{sampler}, {setting} {value:g}", specs, {}, "Small.", at)

    cases = [case(s, "refresh_rate", rate) for s, rate in (("bps", 0.5), ("bps", 2.0), ("boomerang", 2.0))]
    cases += [case("bps", "alpha", 1.0, bound="interpolated")]
    sweep = dataclasses.replace(SWEEPS, cases=tuple(cases))
    monkeypatch.setitem(experiments.EXPERIMENTS, SWEEPS.name, sweep)
    return sweep


@pytest.mark.parametrize("experiment", experiments.EXPERIMENTS.values(), ids=lambda e: e.name)
def test_every_spec_of_an_experiment_can_be_run(experiment: Experiment) -> None:
    names = [case.name for case in experiment.cases]
    assert len(set(names)) == len(names)
    for case in experiment.cases:
        assert all(spec.checked() for spec in case.specs)


def test_the_sweep_turns_the_setting_that_it_names() -> None:
    assert {case.at["setting"] for case in SWEEPS.cases} == {"refresh_rate", "velocity_sd", "alpha"}
    for case in SWEEPS.cases:
        for spec in case.specs:
            assert spec.sampler == case.at["sampler"]
            assert spec.settings[case.at["setting"]] == case.at["value"]
            assert (spec.settings.get("bound") == "interpolated") == (case.at["setting"] == "alpha")


@pytest.mark.slow
def test_a_sweep_gives_rows_and_a_figure(small: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sweep.html"
    assert run_here(f"reproduce pdmp-sweeps --out {out} --json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["case"] for row in rows] == [case.name for case in small.cases]
    assert all(row["runs"] == 2 for row in rows)
    for row in rows:
        assert row.keys() >= {"sampler", "setting", "value", *small.measures}
        assert row["ess_per_million"] > 0
        assert row["rmse_se"] is not None
    html = out.read_text()
    assert "refresh rate" in html
    assert "cdn.bokeh.org/bokeh/release" not in html, "it opens without a network"
    assert run_here(f"reproduce pdmp-sweeps --repetitions 1 --out {out}") == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.slow
def test_a_table_of_a_sweep_has_no_published_figures(small: Experiment, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here("reproduce pdmp-sweeps --repetitions 1") == 0
    out, err = capsys.readouterr()
    assert "Small." in out
    assert err.count(", run 1: ess_per_million") == len(small.cases)


@pytest.mark.parametrize("name", ["pdmp-table1", "pdmp-fig3"])
def test_all_samplers_of_a_seed_set_out_from_one_map(name: str) -> None:
    cases = experiments.find(name).cases
    same = [case for case in cases if case.specs[0].target_settings == cases[0].specs[0].target_settings]
    same = [case for case in same if case.specs[0].sampler != "map"]  # which goes there itself
    assert {case.specs[0].sampler for case in same} >= {"bps", "sigma_bps", "boomerang", "sgld"}
    starts = {}
    for case in same:
        for spec in case.specs[:2]:
            assert spec.settings["start"] in ("mode", "one_mode")
            run = ViewedRun(spec.replace(settings=spec.settings | {"mode_steps": 20}))
            run.prepare()
            starts.setdefault(spec.seed, []).append(run.origin)
    for seed in starts:
        assert all(torch.equal(start, starts[seed][0]) for start in starts[seed])
    assert not torch.equal(starts[0][0], starts[1][0])


def shortened(monkeypatch: pytest.MonkeyPatch, name: str, cases: int) -> Experiment:
    """Put an experiment with few draws and cases, on two points, in the place of a real one."""
    found = experiments.find(name)
    target = {"data": "toy_c", "hidden": "2", "points": [[-0.2, 0.1], [0.2, 0.3]], "noise_sd": 1.0}

    def brief(spec: Spec) -> Spec:
        settings = spec.settings | {"mode_steps": 20}
        return spec.replace(draws=10, warmup=2, settings=settings, target_settings=target)

    few = tuple(dataclasses.replace(c, specs=tuple(map(brief, c.specs[:2]))) for c in found.cases[:cases])
    short = dataclasses.replace(found, cases=few)
    monkeypatch.setitem(experiments.EXPERIMENTS, name, short)
    return short


@pytest.mark.slow
def test_each_case_of_a_table_has_its_comment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = shortened(monkeypatch, "pdmp-table1", 3)
    notes = [dataclasses.replace(case, note=f"Comment {i // 2}.") for i, case in enumerate(short.cases)]
    monkeypatch.setitem(experiments.EXPERIMENTS, "pdmp-table1", dataclasses.replace(short, cases=tuple(notes)))
    monkeypatch.setenv("COLUMNS", "200")
    assert run_here("reproduce pdmp-table1 --repetitions 1") == 0
    out, err = capsys.readouterr()
    names = [case.name for case in short.cases]
    assert f"{names[0]}, {names[1]}: Comment 0." in out
    assert f"{names[2]}: Comment 1." in out
    assert "(901.1)" in out
    assert "3 runs; about 35 min on 2 cores" in err, "the time is told before it begins"


@pytest.mark.slow
def test_predictions_are_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, out = shortened(monkeypatch, "pdmp-fig3", 2), tmp_path / "bands.html"
    assert run_here(f"reproduce pdmp-fig3 --out {out} --json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["case"] for row in rows] == [case.name for case in short.cases]
    assert all(row["band_near"] > 0 and row["band_away"] > 0 and row["sampler"] for row in rows)
    assert all(case.name.split(", ")[1] in out.read_text() for case in short.cases)


def test_a_band_is_measured_near_the_data_and_away_from_them() -> None:
    x = np.linspace(0.0, 10.0, 101)
    part = {"x": x, "lo95": np.where(x > 5, -4.0, -1.0), "hi95": np.where(x > 5, 4.0, 1.0)}

    class Done:
        def frame(self, want: list[str]) -> dict:
            return {"prediction": part}

        def scene(self) -> dict:
            return {"data": {"x": np.linspace(0.0, 5.0, 200)}}

    found = _band(Done())
    # Up to 5.1 counts as near: a fiftieth of the width of the data.
    assert found["band_near"] == pytest.approx(1.0, abs=0.1)
    assert found["band_away"] == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("reproduce nope", "choose one of"),
        ("reproduce pdmp-boston --out boston.html", "leave out --out"),
        ("reproduce pdmp-sweeps --out no/such/folder/sweep.html", "no folder"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_the_runs(
    line: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_here(line) == 2
    assert says in capsys.readouterr().err


def test_published_figures_are_read_as_they_are_measured():
    assert published.read("pdmp-table2", "mnist")["Boomerang"] == {
        "accuracy": 0.99, "nll": 0.03, "ece": 0.0085, "ess_pc1": 175.26,
    }  # fmt: skip
    assert published.read("func-table1", "svhn") == {}
    assert "auc_sd" not in published.read("pmcnet-table6")["BBP"]
    names = {path.stem for path in Path(published.__file__).parent.glob("*.csv")}
    assert names <= set(experiments.EXPERIMENTS)
