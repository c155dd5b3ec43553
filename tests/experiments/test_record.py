"""Records: what is written, which one is read, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from bnnviz import paths
from bnnviz.errors import BnnvizError
from bnnviz.experiments import EXPERIMENTS, Case, Experiment, record
from bnnviz.experiments.experiment import fingerprint
from bnnviz.specs.run import Spec
from bnnviz.version import VERSION

NAME = "pdmp-table1"


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Keep this machine's records, and those that come with bnnviz, in folders of the test."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    return tmp_path / "shipped"


def small(**changes: Any) -> Experiment:
    specs = tuple(Spec("network", {"data": "toy_c"}, "bps", {}, 1, 8, 2, seed) for seed in range(2))
    made = Experiment(NAME, "Small", "Little.", ("rmse",), (Case("one", specs), Case("two", specs)))
    return dataclasses.replace(made, **changes)


def write(folder: Path, *values: float, made: Experiment | None = None) -> Path:
    done = [{"rmse": value} for value in values]
    return record.write(made or small(), {"one": done, "two": done}, 3.0, folder)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_records_that_come_with_bnnviz_are_of_the_present_runs(experiment: Experiment) -> None:
    found, problems = record.records(experiment.name)
    assert problems == []
    for one in found:
        part = experiment.at(one.part.get("data"), one.part.get("scale")) if one.part else experiment
        cases = {case.name: case for case in part.cases}
        assert one.version == VERSION and one.seconds > 0 and one.device and not one.here
        assert len(json.dumps(one.panels)) <= record.MOST_BYTES
        assert not experiment.bands or len(one.panels) == len(part.cases)
        for row in one.rows:
            case = cases[row["case"]]
            assert row["seeds"] == case.seeds[: row["runs"]]
            assert row["specs"] == fingerprint(case.specs[: row["runs"]]), row["case"]
            assert all(measure in row for measure in part.measures)


def test_every_record_is_of_an_experiment() -> None:
    assert {path.stem.split(",")[0] for path in record.SHIPPED.iterdir()} <= set(EXPERIMENTS)


def test_a_record_has_means_and_standard_errors(tmp_path: Path) -> None:
    one = record.read(write(tmp_path, 0.4, 0.6), NAME)
    assert (one.version, one.seconds, one.runs, one.panels) == (VERSION, 3.0, 4, [])
    assert one.rows[0]["rmse"] == pytest.approx(0.5)
    assert one.rows[0]["rmse_se"] == pytest.approx(0.1)


def test_records_of_this_machine_come_first(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "SHIPPED", folders)
    assert record.records(NAME) == ([], [])
    write(folders, 0.3)
    assert not record.records(NAME)[0][0].here
    own = write(paths.results(), 0.9)
    (one,) = record.records(NAME)[0]
    assert one.here and one.rows[0]["rmse"] == 0.9
    own.write_text("{")
    (one,), (problem,) = record.records(NAME)
    assert not one.here and f"reproduce {NAME}" in problem


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99},
        {"experiment": "pdmp-fig3"},
        {"rows": [{"case": "one"}]},
        {"rows": [{"case": "one", "runs": 1, "rmse": "low", "rmse_se": None}]},
        {"rows": "none"},
        {"seconds": "long"},
        {"panels": [["heading"]]},
        {"part": None},
        {"more": 1},
    ],
)
def test_a_changed_record_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path, 0.4)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BnnvizError, match=NAME):
        record.read(path, NAME)
