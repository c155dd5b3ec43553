"""A file of the user's own: what is read from it, what is refused, and how it travels with a spec."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bnnviz
from bnnviz import data
from bnnviz.api.automatic import of_table
from bnnviz.engine.automatic.tables import DEFAULTS
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue
from bnnviz.specs.run import Spec
from tests.driven import run_here

GOOD = "a,b,y\n" + "".join(f"{i},{i * i % 7},{i / 4 + 0.1}\n" for i in range(30))


def rows(header: str, row: Callable[[int], Any], count: int = 30) -> str:
    return header + "\n" + "\n".join(str(row(i)) for i in range(count)) + "\n"


CLASSES = rows("length,colour,kind", lambda i: f"{i / 10},{['red', 'green', 'blue'][i % 3]},{'uv'[i % 2]}")


def read(text: str, target: str = "y", task: str | None = None) -> data.UserTable:
    return data.read_table(text.encode(), target, task, "mine.csv")


# --- what is refused


def sparse(folder: Path) -> Path:
    """Return a file of 10 GB that takes no space."""
    with (folder / "huge.csv").open("wb") as stream:
        stream.truncate(10_000_000_000)
    return folder / "huge.csv"


MANY_TEXTS = rows(",".join(f"c{i}" for i in range(300)) + ",y", lambda i: f"v{i % 10}," * 300 + f"{i}.5")
#: Sources, or what makes one in a folder; and other arguments than the target column y.
BAD_TABLES: dict[str, tuple[Any, ...]] = {
    "no file": (lambda folder: folder / "nowhere.csv",),
    "a file without end": ("/dev/zero",),
    "a folder": (lambda folder: folder,),
    "10 GB": (sparse,),
    "empty": (b"",),
    "a million rows": (b"a,y\n" + b"1,2.5\n" * 1_000_000,),
    "zero bytes": (b"a,y\n1,\0\n",),
    "a spreadsheet": (b"PK\x03\x04" + bytes(50),),
    "a gzip file": (gzip.compress(GOOD.encode()),),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)),),
    "one column": (b"y\n1\n2\n3\n",),
    "2,001 columns": (",".join(f"c{i}" for i in range(2001)).encode() + b"\n",),
    "a first line without end": (b"a," * 1_000_000,),
    "all rows too long": (rows("a,y", lambda i: f"{i},{i},2").encode(),),
    "no target named": (GOOD.encode(), None),
    "a missing target": (GOOD.encode(), "price"),
    "classes or amounts": (rows("a,y", lambda i: f"{i},{i % 3}").encode(),),
    "classes without end": (GOOD.encode(), "y", "classification"),
    "an unknown task": (GOOD.encode(), "y", "ranking"),
    "numbers with an odd cell": (rows("a,y", lambda i: f"{i or 'none?'},{i}.5").encode(),),
    "infinite numbers": (rows("a,y", lambda i: f"inf,{i}.5").encode(),),
    "texts that make too many columns": (MANY_TEXTS.encode(),),
}


@pytest.mark.parametrize("given", BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_bad_table_is_refused(given, tmp_path):
    source, target, task = (*given, *("y", None)[len(given) - 1 :])
    source = source(tmp_path) if callable(source) else source
    begun = time.process_time()
    with pytest.raises(BnnvizError) as caught:
        data.read_table(source, target, task)
    assert time.process_time() - begun < 5  # it does not hang
    assert len(caught.value.sentence) < 450
    assert caught.value.field in ("data", "target_column", "task")


# --- what is read


def test_a_plain_table_is_read_as_it_is():
    table = read(GOOD)
    assert (table.task, table.target, table.x_names) == ("regression", "y", ("a", "b"))
    np.testing.assert_array_equal(table.x[:3], [[0, 0], [1, 1], [2, 4]])
    np.testing.assert_allclose(table.y[:3], [0.1, 0.35, 0.6])
    facts = table.facts()
    assert {key: facts[key] for key in ("name", "rows", "inputs", "task")} == {
        "name": "mine.csv",
        "rows": 30,
        "inputs": 2,
        "task": "regression",
    }
    assert len(facts["sha256"]) == 12


def test_quotes_and_spaces_around_names_and_cells():
    table = read('"a, or b" , y \n' + "".join(f'"{i}", {i}.5\n' for i in range(9)))
    assert (table.x_names, table.target) == (("a, or b",), "y")
    assert table.x[:, 0].tolist() == list(range(9))


def test_a_comment_above_numbers_names_the_columns_as_savetxt_writes_it():
    table = data.read_table(("# a,y\n" + "".join(f"{i}.5,{2 * i}.25\n" for i in range(9))).encode(), "y")
    assert list(table.frame) == ["a"] and table.notes == ()


def test_rows_without_a_target_are_left_out():
    table = read(rows("a,y", lambda i: f"{i}," + ("" if i % 3 else f"{i}.5")))
    assert table.x[:, 0].tolist() == table.y.astype(int).tolist() == list(range(0, 30, 3))


@pytest.mark.parametrize(
    ("cell", "task", "found", "names"),
    [
        (lambda i: i % 3 + 1, "classification", "classification", ("1", "2", "3")),
        (lambda i: i % 3 + 1, "regression", "regression", ()),
        (lambda i: i % 12, None, "regression", ()),
        (lambda i: i % 3 + 0.5, None, "regression", ()),
        (lambda i: i % 3 + 0.5, "classification", "classification", ("0.5", "1.5", "2.5")),
        (lambda i: i % 2 == 0, None, "classification", ("False", "True")),
        (lambda i: ["0-9", "10-19", "20+"][i % 3], None, "classification", ("0-9", "10-19", "20+")),
        (lambda i: ["1", "2", "many"][i % 3], None, "classification", ("1", "2", "many")),
    ],
)
def test_the_task_is_distinguished_or_as_given(cell, task, found, names):
    table = read(rows("a,y", lambda i: f"{i},{cell(i)}"), task=task)
    assert (table.task, table.class_names) == (found, names)


def test_a_tenth_of_the_rows_is_for_the_test():
    splits = [read(GOOD).load(split) for split in range(20)]
    assert {len(one.x_test) for one in splits} == {3}
    assert len({tuple(one.y_test) for one in splits}) == 20
    one = splits[0]
    assert sorted([*one.y_train, *one.y_test]) == sorted(read(GOOD).y)
    assert (one.x_names, one.y_label, one.name) == (("a", "b"), "y", "mine.csv")
    assert one.standardise


def test_a_table_survives_packing():
    table = read(CLASSES.replace("red", "röt"), "kind")
    copy = data.UserTable.unpack(table.pack())
    for name in ("name", "sha256", "task", "x_names", "target", "class_names", "notes"):
        assert getattr(copy, name) == getattr(table, name)
    np.testing.assert_array_equal(copy.x, table.x)
    np.testing.assert_array_equal(copy.y, table.y)


@pytest.mark.parametrize("attachment", [b"", b"nonsense", read(GOOD).pack()[:-40], b"PK\x03\x04" + bytes(50)])
def test_an_attachment_that_is_no_table_is_refused(attachment):
    with pytest.raises(BnnvizError, match="attached table cannot be read"):
        Spec(target="network", target_settings={"data": "own"}, attachment=attachment).checked()


# --- how it travels


def own_spec(text: str = GOOD, target: str = "y", **options) -> Spec:
    settings = {"data": "own", "hidden": "5", **options.pop("target_settings", {})}
    options = {"draws": 10, "warmup": 5, "chains": 2, **options}
    return Spec(target="network", target_settings=settings, attachment=read(text, target).pack(), **options).checked()


def test_a_link_alone_cannot_bring_the_file():
    with pytest.raises(BnnvizError) as caught:
        Spec.from_json(own_spec().to_json())
    assert caught.value.sentence == (
        "This spec's data came from a file (mine.csv), which a link cannot contain; open the file again."
    )
    assert caught.value.field == "data"


@pytest.mark.parametrize("file", [None, "mine.csv", 3, {}, {"name": "x" * 5000}])
def test_a_spec_without_its_file_is_refused(file):
    with pytest.raises(BnnvizError, match="file") as caught:
        Spec.from_json({"target": "network", "target_settings": {"data": "own"}, "file": file})
    assert len(caught.value.sentence) < 250


def test_another_file_than_the_specs_is_refused():
    with pytest.raises(BnnvizError, match=r"mine.csv differs from the one in this spec"):
        Spec.from_json(own_spec().to_json(), read(GOOD.replace("29,", "30,")).pack())


def test_a_run_samples_the_file():
    run = Run(own_spec())
    table = read(GOOD)
    np.testing.assert_array_equal(run.target.data_set.y_train, table.load(0).y_train)
    assert (run.target.examples, run.target.likelihood.name) == (27, "gaussian")
    assert run.target.describe_value().startswith("mine.csv, 2-5-1")
    classes = Run(own_spec(CLASSES, "kind", target_settings={"split": 3, "noise": "learned"}))
    assert classes.target.likelihood.name == "bernoulli"
    np.testing.assert_array_equal(classes.target.data_set.y_test, read(CLASSES, "kind").load(3).y_test)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "target"), [(GOOD, "y"), (CLASSES, "kind")])
def test_a_checkpoint_keeps_the_file(text, target):
    def finished(run: Run) -> np.ndarray:
        while not run.finished:
            run.advance(0.5)
        return run.draws

    run = Run(own_spec(text, target))
    run.prepare()
    for _ in range(60):
        run.step_proposal()
    copy = Run.restore(run.checkpoint())
    assert copy.spec == run.spec
    assert copy.spec.attachment == run.spec.attachment
    assert np.array_equal(finished(copy), finished(run))


# --- the command line


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(GOOD.replace("\n3,", "\n,"))
    (tmp_path / "kinds.csv").write_text(CLASSES)
    (tmp_path / "toy_c").write_text(GOOD)
    return tmp_path


SMALL = "--draws 10 --chains 2 --set hidden=3 --set warmup=5 --json"


@pytest.mark.usefixtures("files")
def test_a_regression_from_the_command_line(capsys):
    assert run_here(f"sample --data mine.csv --target-column y {SMALL} --minutes 0.1") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    # A network of 16 weights and a linear path of three, with too few weights for scales; the noise.
    chosen = found["target_settings"]
    assert (chosen["data"], chosen["noise"], chosen["prior"], found["draws"]) == ("own", "learned", "learned", 10)
    assert found["dim"] == 16 + 3 + 1
    findings = found["verdict"]["values"]["findings"]
    assert any("was chosen: a gradient of all 27 rows" in note["text"] for note in found["notes"]) and findings in err
    assert found["rmse"] > 0
    assert "1 of 30 rows have missing inputs" in err


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--data mine.csv", "its columns are a, b, y"),
        ("--data mine.csv --target-column z", "no column 'z'"),
        ("--data gone.csv --target-column y", "There is no file gone.csv"),
        ("--data gone", "no data set and no file 'gone'"),
        ("--data boston --target-column y", "--target-column is for a CSV file"),
        ("--data boston --task regression", "--task is for a CSV file"),
        ("--data own", "none is open"),
    ],
)
def test_bad_lines_exit_2_with_one_sentence(line, says, capsys):
    assert run_here(f"sample {line}") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("given", [{}, {"noise": "fixed", "prior": "equal"}])
def test_the_noise_of_a_table_is_learned_whatever_the_sampler(tmp_path, monkeypatch, given):
    """One of a table's unknown unit cannot be fixed in advance; what is said stays."""
    specs: list[Spec] = []
    monkeypatch.setattr("bnnviz.cli.sample._sample", lambda spec, *_: specs.append(spec) or 0)
    file = tmp_path / "table.csv"
    file.write_bytes(GOOD.encode())
    settings = " ".join(f"--set {name}={value}" for name, value in given.items())
    assert run_here(f"sample --data {file} --target-column y --sampler nuts {settings}") == 0
    assert {name: specs[0].target_settings[name] for name in DEFAULTS} == DEFAULTS | given
    from_python = of_table(read(GOOD), given)[1]
    assert {name: from_python[name] for name in DEFAULTS} == DEFAULTS | given


# --- sampled from Python


def test_a_table_is_a_target_of_sample():
    table = read(GOOD)
    options = {"draws": 6, "warmup": 4, "chains": 2, "seed": 3}
    run = bnnviz.sample(table, "hmc", target_settings={"hidden": "3"}, **options)
    settings = DEFAULTS | {"data": catalogue.own_data(), "hidden": "3"}
    spec = Spec(target="network", target_settings=settings, sampler="hmc", attachment=table.pack(), **options)
    np.testing.assert_array_equal(run.draws, bnnviz.sample(spec).draws)
    frame = run.predict(GOOD.encode()).to_frame()
    assert len(frame) == len(table.y)


@pytest.mark.parametrize("mark", ["\t", ";", ","])
def test_row_names_without_a_name_are_left_out_as_r_writes_them(mark: str) -> None:
    lines = [f'"{i}"{mark}{0.5 + i}{mark}{2 * i + 0.25}' for i in range(1, 21)]
    table = data.read_table("\n".join([f'"x"{mark}"y"', *lines]).encode(), "y")
    assert list(table.frame) == ["x"]
    np.testing.assert_allclose(table.frame["x"], 0.5 + np.arange(1, 21))
    np.testing.assert_allclose(table.y, 2 * np.arange(1, 21) + 0.25)


def test_a_line_of_names_that_lacks_another_column_is_refused() -> None:
    lines = [f"{0.5 + i},{2 * i},{i}" for i in range(1, 21)]
    with pytest.raises(BnnvizError, match="has 2 cells and the next one 3"):
        data.read_table("\n".join(["x,y", *lines]).encode(), "y")
