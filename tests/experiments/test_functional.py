"""The curves of the functional paper's Figure 4, and the regressions of the PDMP paper's supplement."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

from bnnviz import experiments, plots
from bnnviz.cli.main import main
from bnnviz.data import files
from bnnviz.experiments import Experiment
from bnnviz.experiments.functional.curves_run import figures
from bnnviz.experiments.predictive_run import ran
from bnnviz.specs.run import Spec

CURVES, UCI = experiments.find("func-fig4"), experiments.find("pdmp-uci")


@pytest.fixture(autouse=True)
def nothing_is_kept_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have what is reproduced kept in a folder of the test's own."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))


def brief() -> Experiment:
    """Return the curves of two samplers with few moves on few digits."""

    def short(spec: Spec) -> Spec:
        target = spec.target_settings | {"data": "mnist", "network": "mlp", "train_rows": 40, "test_rows": 30}
        each = 5 if spec.sampler == "sgfuncrld" else 1
        settings = spec.settings | {"every": 5, "batch_size": 20, "step_size": 1e-4}
        return spec.replace(target_settings=target, settings=settings, draws=6 * each)

    chosen = [case for case in CURVES.cases if case.name in ("SGFuncRLD, as printed", "SGLD")]
    cases = tuple(dataclasses.replace(case, specs=tuple(map(short, case.specs[:2]))) for case in chosen)
    return dataclasses.replace(CURVES, cases=cases, data="mnist")


def test_final_errors_roughness_and_half_of_the_way() -> None:
    train = [0.9, 0.7, 0.5, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    validation = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.6, 0.4, 0.6, 0.5]
    found = figures({"epoch": list(range(10, 110, 10)), "train": train, "validation": validation}, classes=10)
    # Between a guess's 0.9 and 0.1 half of the way is 0.5, where the third point is; the second half jumps .2 .2 .2 .1.
    assert found["error_train"] == pytest.approx(0.1) and found["error_validation"] == pytest.approx(0.5)
    assert found["roughness"] == pytest.approx(0.7 / 4) and found["halfway"] == 30


def test_every_sampler_makes_as_many_moves_with_its_tuning() -> None:
    for part in (CURVES, CURVES.at(None, "paper")):
        for case in part.cases:
            spec = case.specs[0]
            each = 5 if spec.sampler == "sgfuncrld" else 1
            moves = spec.draws // each * spec.settings["every"]
            small = part is CURVES
            tuning = {"psgld": 100 if small else 500, "sgfuncrld": 100 if small else 2000}.get(spec.sampler, 0)
            tuning = 50 if spec.settings.get("variant") == "paper" else tuning
            most = 476 if small else 8160
            assert most - spec.settings["every"] < moves + tuning <= most, case.name


def test_the_learning_rates_are_the_papers() -> None:
    """Of the mean loss of a row: U is the loss times so many rows, and SGLD moves by half of its step size."""
    settings = {case.name: case.specs[0].settings for case in CURVES.at(None, "paper").cases}
    rows = 39_209
    assert settings["SGLD"]["step_size"] / 2 * rows == pytest.approx(0.1)
    assert settings["SGHMC"]["step_size"] * rows == pytest.approx(0.1) and settings["SGHMC"]["friction"] == 0.4
    assert settings["pSGLD"]["step_size"] / 2 * rows == pytest.approx(1e-4)
    assert settings["SGFuncRLD"]["step_size"] == 1e-3 and settings["SGFuncRLD"]["smoothing"] == 0.999


@pytest.mark.slow
def test_the_curves_are_the_errors_of_the_runs_draws() -> None:
    short, done = brief(), {}
    for case, _, summary in short.reproduce():
        done.setdefault(case.name, []).append(summary)
    spec = short.cases[0].specs[0]
    run = ran(spec)
    curves = done[short.cases[0].name][0]["pictures"]["curves"]
    for name, (x, y) in {"train": (run.target.x, run.target.y), "validation": run.target.held_out()}.items():
        outputs = run.target.outputs(torch.as_tensor(run.draws[0]), x)
        errors = (outputs.argmax(-1) != y).double().mean(1).numpy()
        np.testing.assert_allclose(curves[name], errors.reshape(6, 5).mean(1))
    # 50 moves of tuning, then a point every 5 moves of batches of 20 of 40 rows.
    np.testing.assert_allclose(curves["epoch"], (50 + 5 * np.arange(1, 7)) / 2)
    panels = short.panels(done)
    assert [heading for heading, *_ in panels] == ["Training error", "Validation error"]
    assert [line["name"] for line in panels[0][2]["lines"]] == ["SGFuncRLD, as printed", "SGLD"]
    both = np.array([one["pictures"]["curves"]["train"] for one in done["SGLD"]])
    np.testing.assert_allclose(panels[0][2]["lines"][1]["mean"], both.mean(0))
    assert "epoch" in plots.page(plots.panels(panels), short.title)


def test_a_run_that_fails_has_no_curve() -> None:
    found = CURVES.panels({"SGLD": [{"error": "All chains met nan.", "figures": {}, "pictures": {}}]})
    assert found == []


# --- the regressions of the PDMP paper's supplement


def test_each_regression_has_its_part_and_its_runs_their_splits() -> None:
    for name in UCI.parts:
        part = UCI.at(name, None)
        specs = [spec for case in part.cases for spec in case.specs]
        assert {spec.target_settings["data"] for spec in specs} == {name}
        assert all(spec.target_settings["split"] == spec.seed for spec in specs)
        assert "MAP" in [case.name for case in part.cases]
        assert not any(case.published for case in part.cases)


def test_data_that_are_not_here_are_named_with_their_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(shlex.split("reproduce pdmp-uci --data naval"))
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "naval" in said and said.count("\n") == 1
    UCI.at("energy", None).check()
