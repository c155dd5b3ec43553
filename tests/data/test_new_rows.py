"""Rows to predict are read in the columns of the table that a network was trained on."""

from __future__ import annotations

import numpy as np
import pytest

from bnnviz.data import UserTable, read_table
from bnnviz.data.tables.new_rows import read_rows
from bnnviz.errors import BnnvizError

TRAINED = b"id,size,colour,old,price\n" + b"\n".join(
    f"{i + 1},{1.5 * i + 1},{['red', 'green', 'blue'][i % 3]},{['yes', 'no'][i % 2]},{2.25 * i + 0.5}".encode()
    for i in range(12)
)


@pytest.fixture(scope="module")
def table() -> UserTable:
    return UserTable.unpack(read_table(TRAINED, "price", name="houses.csv").pack())


def test_columns_are_found_by_name_in_any_order(table: UserTable) -> None:
    found = read_rows(b"colour,old,extra,size\nred,yes,1,4.5\nblue,no,9,7.25\n", table)
    assert table.x_names == ("size", "colour=blue", "colour=green", "colour=red", "old=yes")
    assert np.array_equal(found.x, [[4.5, 0, 0, 1, 1], [7.25, 1, 0, 0, 0]])
    assert found.complete.all() and found.observed is None
    assert found.notes == ["Columns that the network was not trained on are left out: extra."]


def test_training_rows_are_encoded_as_they_were(table: UserTable) -> None:
    found = read_rows(TRAINED, table)
    assert np.array_equal(found.x, table.x) and np.array_equal(found.observed, table.y)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pink,yes,4", "a value of colour that no training row has, such as 'pink' in row 2."),
        (",yes,4", "1 row of 2 with a missing value"),
        ("red,maybe,4", "a value of old that no training row has, such as 'maybe' in row 2."),
        ("red,yes,inf", "1 row of 2 with a missing value"),
    ],
)
def test_a_row_that_does_not_fit_is_left_out_and_told(table: UserTable, line: str, said: str) -> None:
    found = read_rows(f"colour,old,size\nred,no,3\n{line}\n".encode(), table)
    assert found.complete.tolist() == [True, False] and np.isnan(found.x[1]).all()
    assert any(said in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour,old,siz\nred,no,3\n", r"lacks .*\(size\); is siz what is called size there"),
        ("colour,size\nred,3\n", r"lacks .*\(old\); it has colour, size"),
        ("colour,old,size\nred,no,big\n", "column size holds texts such as 'big' in row 1"),
        ("colour,old,size\nred,no,-999\nred,no,1\nred,no,2\nred,no,3\nred,no,4\nred,no,5\n", r"missing=\[.-999.\]"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(table: UserTable, text: str, said: str) -> None:
    with pytest.raises(BnnvizError, match=said):
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
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"old": ["no", "yes"], "size": [1 / 3, 1e-7], "colour": ["red", "blue"]})
    assert np.array_equal(read_rows(frame, table).x[:, 0], [1 / 3, 1e-7])


def test_decimal_marks_and_missing_values_are_those_of_the_table() -> None:
    rows = "\n".join(f"{i};{i},5;{2 * i},25" for i in range(9))
    table = read_table(f"a;b;y\n{rows}\n".encode(), "y", "regression", missing=["-1"])
    found = read_rows(b"a;b\n3;1,952\n-1;2,5\n", table)
    assert found.x[0].tolist() == [3, 1.952] and found.complete.tolist() == [True, False]


def test_classes_are_compared_by_name() -> None:
    rows = "\n".join(f"{i},{['cat', 'dog'][i % 2]}" for i in range(10))
    table = read_table(f"a,kind\n{rows}\n".encode(), "kind")
    found = read_rows(b"a,kind\n1,dog\n2,bird\n3,\n4,cat\n", table)
    assert np.array_equal(found.observed, [1, np.nan, np.nan, 0], equal_nan=True)


def test_a_file_without_names_whose_places_moved_is_refused() -> None:
    table = read_table("\n".join(f"{i * i + 0.5},{i},{3 * i + 0.25}" for i in range(9)).encode(), "c1")
    with pytest.raises(BnnvizError, match="lacks columns|places have moved"):
        read_rows(b"1,2\n3,4\n", table)


def test_one_column_is_enough_in_either_writing() -> None:
    table = read_table("\n".join(["a;b", *(f"{i},5;{2 * i}" for i in range(9))]).encode(), "b", "regression")
    assert read_rows(b"a\n4,25\n5,5\n", table).x.tolist() == [[4.25], [5.5]]
