"""Experiments of the papers: what they run, and that ``bnnviz reproduce`` gives rows, figures and records."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from bnnviz import experiments, plots
from bnnviz.data import files
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.experiments import EXPERIMENTS, Case, Experiment, record
from bnnviz.experiments.functional.curves_run import figures
from bnnviz.experiments.paper import PAPERS, heading, paper_of
from bnnviz.experiments.predictive import PredictiveExperiment
from bnnviz.experiments.predictive_run import ran
from bnnviz.specs.run import Spec
from tests.driven import run_here

CURVES, UCI = experiments.find("func-fig4"), experiments.find("pdmp-uci")
every = pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)


@pytest.fixture(autouse=True)
def nothing_is_kept_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))


# --- what is listed


@every
def test_every_spec_can_be_run(experiment: Experiment) -> None:
    names = [case.name for case in experiment.cases]
    assert len(set(names)) == len(names)
    assert paper_of(experiment) in PAPERS and all(heading(experiment))
    for case in experiment.cases:
        assert all(spec.checked() for spec in case.specs)
        assert set(case.published) <= {*experiment.measures, "ess_pc1"}


@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize("experiment", [e for e in EXPERIMENTS.values() if e.parts], ids=lambda e: e.name)
def test_every_part_can_be_run(experiment: Experiment, scale: str) -> None:
    for data in experiment.parts:
        part = experiment.at(data, scale)
        assert (part.data, part.scale) == (data, scale)
        specs = [spec for case in part.cases for spec in case.specs]
        assert {spec.checked().target_settings["data"] for spec in specs} == {data}
    with pytest.raises(BnnvizError, match="nothing"):
        experiment.at("nothing", None)
    with pytest.raises(BnnvizError, match="huge"):
        experiment.at(None, "huge")


@pytest.mark.parametrize("name", ["pdmp-table1", "pdmp-fig3"])
def test_all_samplers_of_a_seed_start_at_one_map(name: str) -> None:
    cases = experiments.find(name).cases
    same = [case for case in cases if case.specs[0].target_settings == cases[0].specs[0].target_settings]
    same = [case for case in same if case.specs[0].sampler != "map"]  # which searches it itself
    starts: dict[int, list[torch.Tensor]] = {}
    for case in same:
        for spec in case.specs[:2]:
            run = ViewedRun(spec.replace(settings=spec.settings | {"mode_steps": 20}))
            run.prepare()
            starts.setdefault(spec.seed, []).append(run.origin)
    for seed in starts:
        assert all(torch.equal(start, starts[seed][0]) for start in starts[seed])
    assert not torch.equal(starts[0][0], starts[1][0])


# --- runs


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """A sweep of two settings on a network that takes no time, under the name of the real one."""

    def case(sampler: str, value: float) -> Case:
        target = {"data": "toy_c", "hidden": "2", "points": [[-0.2, 0.1], [0.2, 0.3]]}
        chosen = {"mode_steps": 20, "refresh_rate": value}
        specs = tuple(Spec("network", target, sampler, chosen, 2, 8, 2, seed) for seed in range(2))
        at = {"sampler": sampler, "setting": "refresh_rate", "value": value}
        return Case(f"{sampler}, refresh_rate {value:g}", specs, at=at)

    cases = tuple(case(*each) for each in (("bps", 0.5), ("bps", 2.0), ("boomerang", 2.0)))
    made = dataclasses.replace(experiments.find("pdmp-sweeps"), cases=cases)
    monkeypatch.setitem(EXPERIMENTS, made.name, made)
    return made


def test_a_sweep_gives_rows_a_figure_and_a_record(
    sweep: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sweep.html"
    assert run_here(f"reproduce pdmp-sweeps --out {out} --json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["case"] for row in rows] == [case.name for case in sweep.cases]
    assert all(row["runs"] == 2 and row["rmse_se"] is not None and row["ess_per_million"] > 0 for row in rows)
    assert "refresh rate" in out.read_text()
    assert record.records("pdmp-sweeps")[0][0].here
    assert run_here(f"reproduce pdmp-sweeps --repetitions 1 --out {out}") == 2
    assert "exists already" in capsys.readouterr().err


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> PredictiveExperiment:
    """An experiment over draws of two methods that takes no time, under the name of a real one."""
    target = {"data": "control_50", "hidden": "2"}
    light = {"draws_each": 10, "sigma0": 0.5, "start": "random"}
    whole = tuple(Spec("network", target, "pmcnet_light", light, 4, 30, 0, seed) for seed in range(2))
    chain = tuple(Spec("network", target, "sgld", {"start": "random"}, 1, 12, 2, seed) for seed in range(2))
    made = PredictiveExperiment(
        name="pmcnet-fig3",
        title="Small",
        doc="",
        measures=("auc", "accuracy"),
        cases=(Case("light", whole), Case("chain", chain)),
        pictures=("roc", "history", "confusion", "chances"),
        followed=("accuracy",),
    )
    monkeypatch.setitem(EXPERIMENTS, made.name, made)
    return made


@pytest.mark.slow
def test_a_row_has_means_over_runs_of_means_over_draws(small: PredictiveExperiment) -> None:
    done: dict[str, list] = {}
    for case, _, found in small.reproduce():
        done.setdefault(case.name, []).append(found)
    row = small.row(small.cases[0], done["light"])
    assert row["runs"] == 2
    for kind, name in (("figures", "auc"), ("sds", "auc_sd"), ("averaged", "auc_averaged")):
        assert row[name] == pytest.approx(np.mean([one[kind]["auc"] for one in done["light"]]))
    assert 1 <= row["weights_ess"] <= 40
    assert small.row(small.cases[1], done["chain"])["weights_ess"] is None
    history = done["light"][0]["pictures"]["history"]
    assert history["iteration"] == [1, 2, 3]
    assert history["accuracy"]["mean"][-1] == pytest.approx(done["light"][0]["figures"]["accuracy"])
    shown = small.panels(done)
    assert [view for _, view, _ in shown] == ["roc"] * 2 + ["history"] + ["confusion"] * 2 + ["chances"] * 8
    assert plots.page(plots.panels(shown), "All kinds")
    failed = small.row(small.cases[0], [{"error": "All chains met nan.", "figures": {}, "sds": {}, "averaged": {}}])
    assert failed["auc"] is None and "nan" in failed["error"]


@pytest.mark.slow
def test_an_interrupted_experiment_continues(
    small: PredictiveExperiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, whole = [], PredictiveExperiment.result

    def counted(self: PredictiveExperiment, spec: Spec) -> dict:
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append(spec.sampler)
        return whole(self, spec)

    monkeypatch.setattr(PredictiveExperiment, "result", counted)
    assert run_here("reproduce pmcnet-fig3") == 130
    made.clear()
    assert run_here("reproduce pmcnet-fig3 --json") == 0
    reported = capsys.readouterr()
    assert "3 of them kept" in reported.err
    assert [row["case"] for row in json.loads(reported.out)] == ["light", "chain"]
    assert made == ["sgld"]
    spec = small.cases[0].specs[0]
    assert small.kept() == 4
    assert dataclasses.replace(small, pictures=("roc",)).kept() == 0, "other pictures are other results"
    small._place(spec).write_text("{ half a fi")
    assert small.kept() == 3


def test_final_errors_roughness_and_half_of_the_way() -> None:
    train = [0.9, 0.7, 0.5, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    validation = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.6, 0.4, 0.6, 0.5]
    found = figures({"epoch": list(range(10, 110, 10)), "train": train, "validation": validation}, classes=10)
    # Between a guess's 0.9 and 0.1 half of the way is 0.5, where the third point is; the second half jumps .2 .2 .2 .1.
    assert found["error_train"] == pytest.approx(0.1) and found["error_validation"] == pytest.approx(0.5)
    assert found["roughness"] == pytest.approx(0.7 / 4) and found["halfway"] == 30


@pytest.mark.slow
def test_the_curves_are_the_errors_of_the_draws() -> None:
    def short(spec: Spec) -> Spec:
        target = spec.target_settings | {"data": "mnist", "network": "mlp", "train_rows": 40, "test_rows": 30}
        settings = spec.settings | {"thin": 5, "batch_size": 20, "step_size": 1e-4}
        return spec.replace(target_settings=target, settings=settings, draws=30)

    (case,) = (case for case in CURVES.cases if case.name == "SGFuncRLD, as printed")
    brief = dataclasses.replace(CURVES, cases=(dataclasses.replace(case, specs=(short(case.specs[0]),)),), data="mnist")
    ((_, _, found),) = brief.reproduce()
    run = ran(brief.cases[0].specs[0])
    for name, (x, y) in {"train": (run.target.x, run.target.y), "validation": run.target.held_out()}.items():
        errors = (run.target.outputs(torch.as_tensor(run.draws[0]), x).argmax(-1) != y).double().mean(1).numpy()
        np.testing.assert_allclose(found["pictures"]["curves"][name], errors.reshape(6, 5).mean(1))
    # 50 moves of tuning, then a point every 5 moves of batches of 20 of 40 rows.
    np.testing.assert_allclose(found["pictures"]["curves"]["epoch"], (50 + 5 * np.arange(1, 7)) / 2)
    assert [heading for heading, *_ in brief.panels({case.name: [found]})] == ["Training error", "Validation error"]
    assert brief.panels({case.name: [{"error": "nan", "figures": {}, "pictures": {}}]}) == []


# --- what is refused


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("reproduce nope", "nope"),
        ("reproduce pdmp-boston --scale huge", "--scale"),
        ("reproduce pdmp-boston --out boston.html", "--out"),
        ("reproduce pdmp-sweeps --out no/such/folder/sweep.html", "folder"),
    ],
)
def test_what_cannot_be_run_is_refused(line: str, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here(line) == 2
    assert key in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "key"), [("pmcnet-table9 --data svhn_grey", "--data rotated_mnist"), ("pdmp-uci --data naval", "naval")]
)
def test_data_that_are_not_here_are_named(
    line: str, key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    assert run_here(f"reproduce {line}") == 2
    assert key in capsys.readouterr().err
    UCI.at("energy", None).check()
