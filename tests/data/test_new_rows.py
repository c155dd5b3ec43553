"""New rows go through the encoder of the table that a network was trained on: one result for each row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bnnviz
from bnnviz.data import UserTable, read_table
from bnnviz.data.tables.new_rows import read_rows
from bnnviz.errors import BnnvizError

TRAINED = b"id,size,colour,old,day,price\n" + b"\n".join(
    f"{i + 1},{1.5 * i + 1 if i else ''},{['red', 'green', 'blue'][i % 3]},{['yes', 'no'][i % 2]},"
    f"2024-01-{i + 1:02d},{2.25 * i + 0.5}".encode()
    for i in range(12)
)
NAMES = ("size", "day", "size is missing", "colour=blue", "colour=green", "colour=red", "old=no", "old=yes")
MEDIAN = 10.0


@pytest.fixture(scope="module")
def table() -> UserTable:
    return UserTable.unpack(read_table(TRAINED, "price", name="houses.csv").pack())


def test_columns_are_found_by_name_in_any_order(table: UserTable) -> None:
    found = read_rows(b"colour,day,old,extra,size\nred,2024-02-01,yes,1,4.5\nblue,2024-01-01,no,9,7.25\n", table)
    assert table.x_names == NAMES
    assert np.array_equal(found.x, [[4.5, 19754, 0, 0, 0, 1, 0, 1], [7.25, 19723, 0, 1, 0, 0, 1, 0]])
    assert not any(found.row_notes) and found.observed is None


def test_training_rows_are_encoded_as_they_were(table: UserTable) -> None:
    found = read_rows(TRAINED, table)
    assert np.array_equal(found.x, table.x) and np.array_equal(found.observed, table.y)


@pytest.mark.parametrize(
    ("cells", "expected", "noted"),
    [
        ({"size": "inf"}, [MEDIAN, 19723, 1, 0, 0, 1, 0, 1], "size"),
        ({"size": ""}, [MEDIAN, 19723, 1, 0, 0, 1, 0, 1], "size"),
        ({"size": "big"}, [MEDIAN, 19723, 1, 0, 0, 1, 0, 1], "big"),
    ],
)
def test_a_cell_that_does_not_fit_is_filled_and_noted(
    table: UserTable, cells: dict[str, str], expected: list[float], noted: str
) -> None:
    row = {"colour": "red", "size": "4", "old": "yes", "day": "2024-01-01"}
    lines = [row, row | cells]
    text = "\n".join([",".join(row), *(",".join(each.values()) for each in lines)])
    found = read_rows(text.encode(), table)
    assert found.x[1].tolist() == expected
    assert found.row_notes[0] == "" and noted in found.row_notes[1]


@pytest.mark.parametrize(
    ("cells", "columns"),
    [({"colour": "pink"}, slice(3, 6)), ({"colour": ""}, slice(3, 6)), ({"day": ""}, slice(1, 2))],
)
def test_a_cell_that_no_training_row_lacks_takes_values_of_training_rows(
    table: UserTable, cells: dict[str, str], columns: slice
) -> None:
    row = {"colour": "red", "size": "4", "old": "yes", "day": "2024-01-01"}
    lines = [row, row | cells]
    text = "\n".join([",".join(row), *(",".join(each.values()) for each in lines)])
    found = read_rows(text.encode(), table)
    complete, filled = found.x.versions[:, 0], found.x.versions[:, 1]
    assert (complete == [4, 19723, 0, 0, 0, 1, 0, 1]).all()
    known = {tuple(each) for each in table.x[:, columns]}
    assert {tuple(each) for each in filled[:, columns]} == known
    filled[:, columns] = complete[:, columns]
    assert (filled == complete).all()
    assert found.row_notes[0] == "" and next(iter(cells)) in found.row_notes[1]


def test_every_cell_of_a_row_that_does_not_fit_is_noted(table: UserTable) -> None:
    found = read_rows(b"colour,size,old,day\npink,big,yes,2024-01-01\nred,4,no,2024-01-01\n", table)
    assert "pink" in found.row_notes[0] and "big" in found.row_notes[0] and found.row_notes[0].count("size") == 1


def test_intervals_cover_rows_whose_decisive_value_is_unknown() -> None:
    """Against simulated rows: without the value, intervals are those of all rows that it may belong to."""
    rng = np.random.default_rng(0)

    def drawn(count: int) -> pd.DataFrame:
        made = pd.DataFrame({"a": rng.uniform(20, 200, count), "kind": rng.choice(list("xyz"), count)})
        steps = made["kind"].map({"x": 0, "y": 60, "z": -60})
        return made.assign(y=made["a"] + steps + 4 * rng.normal(size=count))

    run = bnnviz.sample(read_table(drawn(200), "y"), "hmc", draws=100, warmup=200, chains=2, seed=0)
    new, ends = drawn(500), (0.05, 0.95)
    full = run.predict(new, ends)
    for column, gone in (("a", np.nan), ("kind", "unknown")):
        found = run.predict(new.assign(**{column: gone}), ends)
        inside = (new["y"] > found.quantiles[0.05]) & (new["y"] < found.quantiles[0.95])
        assert 0.83 < inside.mean() < 0.97
        assert (found.sd > 3 * full.sd).mean() > 0.99
        some = new.assign(**{column: new[column].where(new.index != 3, gone)})
        np.testing.assert_array_equal(np.delete(run.predict(some, ends).mean, 3), np.delete(full.mean, 3))


@pytest.mark.parametrize(
    "text",
    ["colour,old,siz,day\nred,no,3,2024-01-01\n", "colour,old,size,day\nred,no,big,2024-01-01\n"],
)
def test_a_file_that_does_not_fit_is_refused(table: UserTable, text: str) -> None:
    with pytest.raises(BnnvizError, match="siz"):
        read_rows(text.encode(), table)


@pytest.mark.parametrize(
    ("trained", "new", "expected"),
    [
        (".", "a;b\n1.000;20,5%\n2.500;3,25%\n", [[1000, 20.5], [2500, 3.25]]),
        (",", "a,b\n1.5,20.5%\n2.25,3.25%\n", [[1.5, 20.5], [2.25, 3.25]]),
        (",", "a;b\n1.952;7%\n2.001;8%\n", [[1952, 7], [2001, 8]]),
        (".", "a;b\n1,952;7%\n2,001;8%\n", [[1952, 7], [2001, 8]]),
    ],
)
def test_new_rows_are_read_in_their_own_number_format(trained: str, new: str, expected: list[list[float]]) -> None:
    """The table's format is used only for what a file leaves open."""
    rows = "\n".join(f"{i}{trained}5;{i}{trained}25%;{i * i}" for i in range(1, 10))
    table = UserTable.unpack(read_table(f"a;b;y\n{rows}\n".encode(), "y", "regression").pack())
    assert read_rows(new.encode(), table).x.tolist() == expected


def test_a_frame_keeps_its_numbers(table: UserTable) -> None:
    days = pd.to_datetime(["2024-01-01", "2024-01-02"])
    frame = pd.DataFrame({"old": ["no", "yes"], "size": [1 / 3, 1e-7], "colour": ["red", "blue"], "day": days})
    assert np.array_equal(read_rows(frame, table).x[:, :2], [[1 / 3, 19723], [1e-7, 19724]])


def test_decimal_marks_and_missing_values_are_those_of_the_table() -> None:
    rows = "\n".join(f"{i};{i},5;{2 * i},25" for i in range(9))
    table = read_table(f"a;b;y\n{rows}\n".encode(), "y", "regression", missing=["-1"])
    found = read_rows(b"a;b\n3;1,952\n-1;2,5\n", table)
    assert found.x.versions[0, 0].tolist() == [3, 1.952] and set(found.x.versions[:, 1, 0]) <= set(range(9))
    assert [bool(note) for note in found.row_notes] == [False, True]


def test_classes_are_compared_by_name() -> None:
    rows = "\n".join(f"{i},{['cat', 'dog'][i % 2]}" for i in range(10))
    table = read_table(f"a,kind\n{rows}\n".encode(), "kind")
    found = read_rows(b"a,kind\n1,dog\n2,bird\n3,\n4,cat\n", table)
    assert np.array_equal(found.observed, [1, np.nan, np.nan, 0], equal_nan=True)


@pytest.mark.parametrize("new", ["code,a\n00017,1\n00018,2\n", 'code;a\n"00017";1\n00018;2\n'])
def test_codes_stay_texts(new: str) -> None:
    rows = "\n".join(f"{['00017', '00018', '00170'][i % 3]},{i},{i * i + 0.5}" for i in range(12))
    table = read_table(f"code,a,y\n{rows}\n".encode(), "y")
    assert read_rows(new.encode(), table).x.tolist() == [[1, 1, 0, 0], [2, 0, 1, 0]]


def test_a_file_without_names_whose_places_moved_is_refused() -> None:
    table = read_table("\n".join(f"{i * i + 0.5},{i},{3 * i + 0.25}" for i in range(9)).encode(), "c1")
    with pytest.raises(BnnvizError, match="missing"):
        read_rows(b"1,2\n3,4\n", table)


def test_one_column_is_enough_in_either_writing() -> None:
    table = read_table("\n".join(["a;b", *(f"{i},5;{2 * i}" for i in range(9))]).encode(), "b", "regression")
    assert read_rows(b"a\n4,25\n5,5\n", table).x.tolist() == [[4.25], [5.5]]


def test_every_path_of_a_run_matches_columns_by_name() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"u": rng.normal(size=40), "v": rng.uniform(size=40), "y": rng.normal(size=40)})
    options = {"draws": 6, "warmup": 4, "chains": 2, "target_settings": {"hidden": "3"}}
    run = bnnviz.sample(read_table(frame, "y"), "hmc", **options)
    new = pd.DataFrame({"v": [0.5, np.nan, 0.1], "y": [0.0, 0, 0], "u": [1.0, 2, np.nan]})
    assert len(run.predict(new)) == len(run.predict(new).to_frame()) == 3
    assert [bool(note) for note in run.predict(new).notes] == [False, True, True]
    for path in (lambda x: run.predict(x).mean, run.functions, lambda x: run.predictive(x, seed=1)):
        np.testing.assert_array_equal(path(frame), path(frame[["y", "v", "u"]]))
        np.testing.assert_array_equal(path(frame), path(frame[["u", "v"]].to_numpy()))
    with pytest.raises(BnnvizError, match="v"):
        run.predict(new[["u"]])
    with pytest.raises(BnnvizError, match="u, v"):
        run.predict(rng.normal(size=(5, 3)))


def test_a_frame_next_to_a_network_is_matched_by_name() -> None:
    import torch

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"u": rng.normal(size=30), "v": rng.uniform(size=30)})
    target = bnnviz.BNN(torch.nn.Linear(2, 1), (frame, frame["u"] - frame["v"]))
    run = bnnviz.sample(target, "hmc", draws=5, warmup=5, chains=2)
    np.testing.assert_array_equal(run.predict(frame).mean, run.predict(frame[["v", "u"]]).mean)
    with pytest.raises(BnnvizError, match="missing"):
        run.predict(frame[["v"]])
