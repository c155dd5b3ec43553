"""Kinds of tables that people bring: the right numbers are read, or the sentence asks and names the line."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from bnnviz import data
from bnnviz.errors import BnnvizError
from tests.data.odd_tables import KINDS, PLAIN, Example, as_csv, frame

FILES = [pytest.param(each, id=f"{kind[:40]}-{k}") for kind, found in KINDS.items() for k, each in enumerate(found)]


def read(text: Any, target_column: str = "y", task: str | None = "regression", **given) -> data.UserTable:
    return data.read_table(text.encode() if isinstance(text, str) else text, target_column, task, "mine.csv", **given)


@pytest.mark.parametrize("example", FILES)
def test_a_file_is_read_as_it_is_meant_or_refused(example: Example) -> None:
    if example.names:
        table = read(example.content, **example.options)
        assert table.x_names == example.names
        np.testing.assert_array_equal(table.x, example.x)
        np.testing.assert_array_equal(table.y, example.y)
    else:
        with pytest.raises(BnnvizError):
            read(example.content, **example.options)


def test_a_column_that_can_be_read_both_ways_is_read_as_the_others():
    american = "p;y\n" + "".join(f"{price};{i}.5\n" for i, price in enumerate(["974", "1,952", "2,001", "810", "999"]))
    assert read(american).x[:, 0].tolist() == [974, 1952, 2001, 810, 999]
    european = american.replace(",", "\0").replace(".", ",").replace("\0", ".")
    assert read(european).x[:, 0].tolist() == [974, 1952, 2001, 810, 999]
    decimals = american.replace(".5", ",5")
    assert read(decimals).x[:, 0].tolist() == [974, 1.952, 2.001, 810, 999]


def test_three_decimals_everywhere_are_decimals():
    text = "p;y\n" + "".join(f"{1 + i / 8:.3f};{i}.5\n" for i in range(7))
    assert read(text).x[:, 0].tolist() == [1 + i / 8 for i in range(7)]


def test_a_first_column_that_says_more_stays():
    times = frame().assign(time=np.arange(40.0))[["time", "a", "y"]]
    assert read(as_csv(times, index=False)).x_names == ("time", "a")
    unnamed = frame().rename(columns={"a": ""})
    assert read(as_csv(unnamed, index=False)).x_names == ("c1", "b")


def test_a_first_row_with_a_gap_or_a_text_is_a_row():
    body = PLAIN.partition("\n")[2]
    assert read("?" + body[1:], "c3").x[0].tolist() == [6.0, 974.0, 1.0]
    texts = "".join(f"{'uvw'[i % 3]},{i}.5,{i}.25\n" for i in range(9))
    assert len(read(texts, "c3").x) == 9


@pytest.mark.parametrize("order", [range(12), np.random.default_rng(0).permutation(12) * 7])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_whole_numbers_called_id_are_no_input_wherever_they_stand(order, place):
    table = frame().head(12)
    table.insert(place, "id", list(order))
    assert read(as_csv(table, index=False)).x_names == ("a", "b")


def test_numbers_and_texts_in_a_target_are_asked_for():
    text = "a,y\n" + "".join(f"{i},{['1.5', 'error', '2.5'][i % 3]}\n" for i in range(12))
    with pytest.raises(BnnvizError, match=r"missing=\[.error.\]"):
        read(text, "y", None)
    assert len(read(text, "y", None, missing=["error"]).x) == 8
    assert read(text, "y", "classification").class_names == ("1.5", "2.5", "error")
    with pytest.raises(BnnvizError, match="error"):
        read(text, "y", "regression")


@pytest.mark.parametrize("start", [b"BZh9", b"\xfd7zXZ\x00", b"PAR1", b"\x89HDF\r\n", b"\x93NUMPY"])
def test_bytes_of_other_programs_are_refused(start):
    with pytest.raises(BnnvizError, match="save (it|or unpack it) as CSV first"):
        data.read_table(start + bytes(40), "y", "regression", "mine.csv")


def test_open_files_are_read_and_a_text_is_no_path():
    for each in (io.StringIO(PLAIN), io.BytesIO(PLAIN.encode())):
        assert read(each).x_names == ("rooms", "price")
    with pytest.raises(BnnvizError, match=r"give it as bytes, text.encode\(\)") as caught:
        data.read_table(PLAIN, "y")
    assert "\n" not in caught.value.sentence


def test_a_text_that_makes_the_name_of_another_column_is_asked_about():
    text = "a,b,b=v,y\n" + "".join(f"{i / 7:.3f},{'uv'[i % 2]},{i % 5},{i}.5\n" for i in range(12))
    with pytest.raises(BnnvizError, match="b=v"):
        read(text)
