"""``bnnviz predict``: a file in, a file of predictions out, by a recording that has gone to another folder."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bnnviz
from tests.driven import run_here


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a recording of a run on a file, moved to another folder, and the file."""
    folder = tmp_path_factory.mktemp("predict")
    rng = np.random.default_rng(0)
    x, kind = rng.uniform(-2, 2, 60), rng.choice(["a", "b", "c"], 60)
    y = 10 + 5 * x + 2 * (kind == "b") + rng.normal(0, 0.5, 60)
    lines = [f"{a},{k},{b}" for a, k, b in zip(x, kind, y, strict=True)]
    file = folder / "train.csv"
    file.write_text("\n".join(["x,kind,y", *lines]))
    chosen = "--set hidden=2 --set noise=learned --sampler hmc --draws 20 --chains 2 --set warmup=40"
    assert run_here(f"sample --data {file} --target-column y {chosen} --record {folder / 'here'} --json") == 0
    shutil.move(folder / "here", folder / "there")
    return folder / "there", file


def test_each_row_has_a_line(recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = recorded
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("kind,x\na,1.5\nz,1\nb,\nc,40\n")
    assert run_here(f"predict {run} --data {new} --out {out} --interval 80") == 0
    rows = list(csv.DictReader(out.open()))
    names = ["row", "lower_80", "median", "upper_80", "mean", "sd", "epistemic_sd", "aleatoric_sd", "far", "notes"]
    assert list(rows[0]) == names
    assert [row["row"] for row in rows] == ["1", "2", "3", "4"]
    assert "'z'" in rows[1]["notes"] and "x" in rows[2]["notes"] and rows[0]["notes"] == ""
    assert all(np.isfinite(float(row["mean"])) for row in rows)
    assert (rows[0]["far"], rows[3]["far"]) == ("0", "1")
    statement = capsys.readouterr().err
    assert "2 rows have missing or unknown values" in statement and "4 rows are predicted" in statement
    frame = bnnviz.recording(run).predict(new, (0.1, 0.5, 0.9))
    assert [float(row["mean"]) for row in rows] == pytest.approx(list(frame.mean), rel=1e-5)


def test_columns_of_the_file_are_kept_beside_the_predictions(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text('kind,key,x,mean,note\na,007,1.5,3,"one, two"\nz,0x1F,1,-4,NA\nz,=1+1,1,4,@u\n')
    asked = f"predict {recorded[0]} --data {new} --keep key --keep note --keep mean --out {out}"
    assert run_here(asked) == 0
    rows = list(csv.DictReader(out.open()))
    assert list(rows[0])[:5] == ["row", "key", "note", "mean (given)", "lower_90"]
    assert [(row["key"], row["note"], row["mean (given)"]) for row in rows] == [
        ("007", "one, two", "3"),
        ("0x1F", "NA", "-4"),
        ("'=1+1", "'@u", "4"),
    ]
    assert "left out" not in capsys.readouterr().err
    assert run_here(asked) == 2
    assert "exists already" in capsys.readouterr().err
    assert run_here(f"{asked} --overwrite") == 0
    assert run_here(f"predict {recorded[0]} --data {new} --keep name") == 2
    assert "has no column name to keep; it has kind, key, x, mean" in capsys.readouterr().err


def test_known_observations_are_compared_with(recorded: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    run, file = recorded
    assert run_here(f"predict {run} --data {file}") == 0
    printed = capsys.readouterr()
    rows = list(csv.DictReader(printed.out.splitlines()))
    known = [float(row["y"]) for row in csv.DictReader(file.open())]
    assert [float(row["observed"]) for row in rows] == pytest.approx(known, rel=1e-5)
    for row in rows:
        assert float(row["error"]) == pytest.approx(float(row["observed"]) - float(row["median"]), abs=1e-3)
        assert row["inside"] == str(int(float(row["lower_90"]) <= float(row["observed"]) <= float(row["upper_90"])))
    share = np.mean([row["inside"] == "1" for row in rows])
    assert "Compared with 60 observations" in printed.err and f"{share:.1%} are between" in printed.err


@pytest.mark.parametrize(
    ("text", "statement"), [("x\n1\n", "(kind)"), ("x,kind\nmuch,a\n", "holds texts"), ("x,kind\n", "no rows")]
)
def test_a_file_that_does_not_fit_is_a_sentence(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, statement: str
) -> None:
    new = tmp_path / "new.csv"
    new.write_text(text)
    assert run_here(f"predict {recorded[0]} --data {new}") == 2
    assert statement in capsys.readouterr().err


def test_a_run_of_a_density_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "density"
    assert run_here(f"sample --target gaussian --sampler hmc --draws 5 --record {run} --json") == 0
    assert run_here(f"predict {run} --data {tmp_path / 'none.csv'}") == 2
    assert "CSV file" in capsys.readouterr().err


_ALONE = """
import json, sys
sys.modules["bnnviz"] = None  # importing it is an error
import torch
labels = {"labels.json": ""}
model = torch.export.load(sys.argv[1], extra_files=labels).module()
found = model(torch.tensor(json.loads(sys.argv[2]), dtype=torch.float64))
print(json.dumps({name: value.tolist() for name, value in found.items()} | json.loads(labels["labels.json"])))
"""


def _alone(program: Path, rows: np.ndarray) -> dict[str, list]:
    """Return what an exported ensemble says of rows, in a process that cannot import bnnviz."""
    line = [sys.executable, "-c", _ALONE, str(program), json.dumps(rows.tolist())]
    return json.loads(subprocess.run(line, capture_output=True, text=True, check=True, cwd="/").stdout)


@pytest.mark.slow
def test_an_exported_ensemble_predicts_numbers_without_bnnviz(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    run, _ = recorded
    assert run_here(f"export {run} --format ensemble --draws 1000 --out {tmp_path / 'e.pt2'}") == 0
    known = bnnviz.recording(run).predict(b"x,kind\n1.5,a\n0,b\n-1,c\n")
    found = _alone(tmp_path / "e.pt2", np.array([[1.5, 1, 0, 0], [0.0, 0, 1, 0], [-1.0, 0, 0, 1]]))
    for name in ("mean", "sd", "epistemic_sd", "aleatoric_sd"):
        np.testing.assert_allclose(found[name], getattr(known, name), rtol=1e-4)
    assert found["names"][0] == "x" and len(found["names"]) == 4


@pytest.mark.slow
def test_a_model_of_onnx_predicts_the_same(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    reference = pytest.importorskip("onnx.reference")
    run, _ = recorded
    assert run_here(f"export {run} --format onnx --draws 1000 --out {tmp_path / 'e.onnx'}") == 0
    model = reference.ReferenceEvaluator(str(tmp_path / "e.onnx"))
    found = dict(
        zip(model.output_names, model.run(None, {"x": np.array([[1.5, 1, 0, 0], [0.0, 0, 1, 0]])}), strict=True)
    )
    known = bnnviz.recording(run).predict(b"x,kind\n1.5,a\n0,b\n")
    for name in ("mean", "sd", "epistemic_sd", "aleatoric_sd"):
        np.testing.assert_allclose(found[name], getattr(known, name), rtol=1e-4)


@pytest.mark.parametrize(("target", "heads"), [("y", "RMSE"), ("kind", "log loss")])
def test_a_report_is_one_page_with_the_verdict(
    target: str, heads: str, recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, file = recorded
    out, chosen = tmp_path / "report.html", "--set hidden=2 --sampler hmc --draws 20 --chains 2 --set warmup=40"
    command = f"sample --data {file} --target-column {target} {chosen} --report {out}"
    assert run_here(f"{command} --record {tmp_path / 'run'}") == 0
    text = out.read_text()
    assert heads in text and "boosting" in text and f"bnnviz predict {tmp_path / 'run'}" in text
    assert "src=" not in text.partition("<body")[0] and '<link rel="stylesheet" href' not in text
    capsys.readouterr()
    assert run_here(command) == 2  # the file exists
    assert run_here(f"sample --target banana --sampler hmc --report {tmp_path / 'no.html'}") == 2


def test_corrected_intervals_are_written(recorded: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    run, file = recorded
    assert run_here(f"predict {run} --data {file} --interval 50 --conformal") == 0
    found = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    frame = bnnviz.recording(run).predict(file, (0.25, 0.5, 0.75), conformal=True)
    assert [float(row["upper_50"]) for row in found] == pytest.approx(list(frame.quantiles[0.75]), rel=1e-5)
    assert run_here(f"predict {run} --data {file} --interval 95 --conformal") == 2
    assert "held-out rows" in capsys.readouterr().err
