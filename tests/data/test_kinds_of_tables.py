"""Kinds of tables that people bring: the right numbers are read, or the sentence asks and names the line."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from bnnviz import data
from bnnviz.errors import BnnvizError

TRUE = pd.DataFrame(
    {
        "rooms": [3, 4, 5, 6, 7, 8],
        "price": [974.0, 1952.0, 1234.5, 12345.25, 810.5, 1000000.0],
        "y": [0.5, 1.25, -2.5, 3.0, 0.125, 7.75],
    }
)


def written(decimal: str, thousands: str, separator: str, quote: bool = False) -> str:
    """Return the true table as a program writes it with these marks."""

    def cell(value: float) -> str:
        text = f"{value:,}".removesuffix(".0")
        return text.replace(",", "\0").replace(".", decimal).replace("\0", thousands)

    mark = '"' if quote else ""
    lines = [separator.join(TRUE.columns)]
    lines += [separator.join(f"{mark}{cell(value)}{mark}" for value in row) for row in TRUE.to_numpy()]
    return "\n".join(lines) + "\n"


MARKS = [
    (".", "", ",", False),
    (".", "", ";", False),
    (".", ",", ";", False),
    (".", ",", "\t", False),
    (".", ",", ",", True),
    (".", "'", ";", False),
    (".", "\u2019", ",", False),
    (".", " ", ",", False),
    (",", "", ";", False),
    (",", ".", ";", False),
    (",", ".", ",", True),
    (",", " ", ";", False),
    (",", "\u00a0", "\t", False),
    (",", "\u202f", ";", False),
    (",", "", ",", True),
]


def read(text: str, target: str = "y", task: str | None = "regression", **given) -> data.UserTable:
    return data.read_table(text.encode(), target, task, "mine.csv", **given)


def is_true(table: data.UserTable) -> bool:
    return (
        table.x_names == ("rooms", "price")
        and np.array_equal(table.x, TRUE[["rooms", "price"]].to_numpy(float))
        and np.array_equal(table.y, TRUE["y"])
    )


@pytest.mark.parametrize("marks", MARKS, ids=repr)
def test_numbers_are_read_as_they_are_written(marks):
    assert is_true(read(written(*marks)))


def test_a_column_that_can_be_read_both_ways_is_read_as_the_others():
    american = "p;y\n" + "".join(f"{price};{i}.5\n" for i, price in enumerate(["974", "1,952", "2,001", "810", "999"]))
    assert read(american).x[:, 0].tolist() == [974, 1952, 2001, 810, 999]
    european = american.replace(",", "\0").replace(".", ",").replace("\0", ".")
    assert read(european).x[:, 0].tolist() == [974, 1952, 2001, 810, 999]
    decimals = american.replace(".5", ",5")
    assert read(decimals).x[:, 0].tolist() == [974, 1.952, 2.001, 810, 999]


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["974", "1,952", "2,001", "810", "999"], ";"),
        (["974", "1.952", "2.001", "810", "999"], ";"),
        (['"1,200"', '"1,952"', '"2,001"', '"3,100"', '"9,120"'], ","),
        (["1,200", "1,952", "2,001", "3,100", "9,120"], "\t"),
    ],
    ids=["commas", "points", "quoted", "tabs"],
)
def test_what_can_be_read_both_ways_is_asked_with_its_line(cells, separator):
    text = f"p{separator}y\n" + "".join(f"{cell}{separator}{i}\n" for i, cell in enumerate(cells))
    with pytest.raises(BnnvizError) as caught:
        read(text)
    first = next(i for i, cell in enumerate(cells) if "," in cell or "." in cell)
    assert f"line {first + 2} of mine.csv" in caught.value.sentence
    assert "--decimal" in caught.value.sentence
    plain = [cell.strip('"') for cell in cells]
    for decimal, other in ((".", ","), (",", ".")):
        right = [float(cell.replace(other, "").replace(decimal, ".")) for cell in plain]
        assert read(text, decimal=decimal).x[:, 0].tolist() == right


def test_three_decimals_everywhere_are_decimals():
    text = "p;y\n" + "".join(f"{1 + i / 8:.3f};{i}.5\n" for i in range(7))
    assert read(text).x[:, 0].tolist() == [1 + i / 8 for i in range(7)]


def test_a_decimal_mark_that_is_none_is_refused():
    with pytest.raises(BnnvizError, match="choose a point or a comma"):
        read(written(".", "", ","), decimal="x")


# --- numbers of rows


def frame(index=None) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40), "y": rng.normal(size=40)})
    return found if index is None else found.set_index(index)


def as_csv(table: pd.DataFrame, **given) -> str:
    buffer = io.StringIO()
    table.to_csv(buffer, **given)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "make",
    [
        lambda: as_csv(frame()),
        lambda: as_csv(frame().sort_values("y")),
        lambda: as_csv(frame().sample(frac=0.5, random_state=0)),
        lambda: as_csv(frame(pd.Index([f"patient {i}" for i in range(40)]))),
        lambda: as_csv(frame(), index_label="Unnamed: 0"),
        lambda: as_csv(frame(), index_label="id"),
        lambda: as_csv(frame(), index_label="row_number"),
        lambda: as_csv(frame(), sep=";", decimal=","),
    ],
    ids=["to_csv", "sorted", "sampled", "names", "saved twice", "id", "row number", "semicolons"],
)
def test_what_numbers_the_rows_is_no_input(make):
    table = read(make())
    assert table.x_names == ("a", "b")
    assert any("numbers or names the rows" in note for note in table.notes)


def test_a_first_column_that_says_more_stays():
    times = frame().assign(time=np.arange(40.0))[["time", "a", "y"]]
    assert read(as_csv(times, index=False)).x_names == ("time", "a")
    unnamed = frame().rename(columns={"a": ""})
    assert read(as_csv(unnamed, index=False)).x_names == ("c1", "b")


# --- numbers that stand for no value


@pytest.mark.parametrize("sentinel", [-999, -9999, 99999, 999])
def test_a_number_that_looks_like_no_value_is_asked_for(sentinel):
    table = frame()
    table.loc[[3, 7], "b"] = sentinel
    text = as_csv(table, index=False)
    with pytest.raises(BnnvizError) as caught:
        read(text)
    assert f"Does {sentinel} in the column b, line 5 of mine.csv, stand for a missing value?" in caught.value.sentence
    assert len(read(text, missing=[str(sentinel)]).x) == 38
    kept = read(text, missing=[])
    assert (len(kept.x), kept.x[3, 1]) == (40, sentinel)


def test_numbers_among_others_are_no_gaps():
    table = frame()
    table["b"] = np.linspace(0, 2000, 40).round()
    table.loc[5, "b"] = 999
    assert len(read(as_csv(table, index=False)).x) == 40


# --- lines


PLAIN = as_csv(TRUE, index=False)


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\n" + PLAIN.replace(",", ";"),
        '"sep=,"\n' + PLAIN,
        "# made by a balance\n# on a Monday\n" + PLAIN,
        "#comment, with, commas\n\n" + PLAIN.replace("\n5,", "\n# broken here\n5,"),
        "# " + PLAIN,
        PLAIN.replace("\n", ",\n"),
        PLAIN.replace("\n", ",\n").replace("y,\n", "y\n", 1),
        PLAIN.replace("\n", ",,\n"),
        PLAIN.replace("\n", "\n\n"),
    ],
    ids=[
        "sep=;",
        "quoted sep",
        "comments",
        "comments between",
        "savetxt",
        "trailing commas",
        "trailing commas below the names",
        "two trailing commas",
        "blank lines",
    ],
)
def test_lines_besides_names_and_rows_do_not_matter(text):
    assert is_true(read(text))


def test_names_may_be_numbers_or_words_for_nothing():
    years = PLAIN.replace("rooms,price,y", "2019,2020,y")
    assert read(years).x_names == ("2019", "2020")
    all_years = PLAIN.replace("rooms,price,y", "2019,2020,2021")
    assert read(all_years, "2021").x_names == ("2019", "2020")
    for word in ("NaN", "inf", "None"):
        assert read(PLAIN.replace("rooms", word)).x_names == (word, "price")


def test_a_first_row_with_a_gap_or_a_text_is_a_row():
    body = PLAIN.partition("\n")[2]
    assert len(read("?" + body[1:], "c3").x) == 5
    texts = "".join(f"{'uvw'[i % 3]},{i}.5,{i}.25\n" for i in range(9))
    assert len(read(texts, "c3").x) == 9


def test_the_line_that_is_named_counts_comments_and_quotes():
    text = "# one\n# two\nname;p;y\n" + "".join(
        f'"a\nb";{price};{i}\n' for i, price in enumerate(["974", "810", "1,952", "1,100", "999"])
    )
    with pytest.raises(BnnvizError, match="line 9 of"):
        read(text)


# --- marks, dates, codes


def column(cells, name: str = "b", separator: str = ";", count: int = 12) -> str:
    """Return a table of which one column has these cells, over and over."""
    rows = [f"{i / 7:.3f}{separator}{cells[i % len(cells)]}{separator}{i * i / 9:.3f}" for i in range(count)]
    return f"a{separator}{name}{separator}y\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("cells", "right", "unit"),
    [
        (["0.5%", "12 %", "100%"], [0.5, 12, 100], "%"),
        (["$1,200.50", "$-3.00", "$1,000,000.25"], [1200.5, -3, 1000000.25], "$"),
        (["-$5", "$7"], [-5, 7], "$"),
        (["1.200,50 €", "3,25 €", "4.001,75 €"], [1200.5, 3.25, 4001.75], "€"),
        (["5 kg", "12.5 kg", "100 kg"], [5, 12.5, 100], "kg"),
        (["21°C", "22.5°C"], [21, 22.5], "°C"),
    ],
    ids=["percent", "dollars", "a sign before", "euros", "kilogrammes", "degrees"],
)
def test_a_unit_that_all_cells_have_is_left_out_with_a_note(cells, right, unit):
    table = read(column(cells))
    assert table.x[: len(right), 1].tolist() == right
    assert any(f"The {unit} in every cell of b is left out" in note for note in table.notes)


@pytest.mark.parametrize(
    "cells",
    [
        ["2020-01-31", "2021-02-01"],
        ["31.01.2020", "1.2.2021"],
        ["1/31/20", "2/1/21"],
        ["31 Jan 2020", "1 Feb 2021"],
        ["2020-01-31T08:30:00", "2020-02-01T09:00:00"],
        ["08:30", "09:15"],
    ],
)
def test_dates_are_no_categories(cells):
    with pytest.raises(BnnvizError, match="holds dates or times such as"):
        read(column(cells))


def test_texts_of_one_row_each_are_no_categories():
    with pytest.raises(BnnvizError, match=r"most stand in one row alone \(b\)"):
        read(column([f"=A{i}+1" for i in range(12)]))


def test_words_that_count_as_no_value_are_named():
    table = read(column(["None", "mild", "severe"]))
    assert any("In the column b these count as no value: None (4 times)" in note for note in table.notes)
    classes = read("a,y\n" + "".join(f"{i},{['NA', 'DE', 'FR'][i % 3]}\n" for i in range(12)), "y", None)
    assert any("NA (4 times)" in note for note in classes.notes)
    assert not any("these count as no value" in note for note in read(column(["", "mild", "severe"])).notes)


def test_texts_that_differ_in_capitals_are_told():
    assert any("differ in capitals alone" in note for note in read(column(["Yes", "no", "YES"])).notes)


def test_codes_are_told_and_whole_numbers_that_lose_digits_refused():
    for separator in ";,":
        assert any("such as 01067" in note for note in read(column(["01067", "10115"], separator=separator)).notes)
        with pytest.raises(BnnvizError, match="more digits than are kept"):
            read(column([str(2**60 + i) for i in range(12)], separator=separator))


@pytest.mark.parametrize("order", [range(12), np.random.default_rng(0).permutation(12) * 7])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_whole_numbers_called_id_are_no_input_wherever_they_stand(order, place):
    table = frame().head(12)
    table.insert(place, "id", list(order))
    assert read(as_csv(table, index=False)).x_names == ("a", "b")


def test_a_column_without_a_value_is_left_out():
    table = read(column(["", "NA"]))
    assert (table.x_names, len(table.x)) == (("a",), 12)
    assert "Columns without a value are left out: b." in table.notes


@pytest.mark.parametrize("sentinel", ["-99.9", "9999.99", "-32768", "1e20"])
def test_other_numbers_that_stand_for_no_value_are_asked_for(sentinel):
    with pytest.raises(BnnvizError, match="stand for a missing value"):
        read(column([sentinel, "1.5", "2.5"]))


def test_numbers_and_texts_in_a_target_are_asked_for():
    text = "a,y\n" + "".join(f"{i},{['1.5', 'error', '2.5'][i % 3]}\n" for i in range(12))
    with pytest.raises(BnnvizError, match="--missing error"):
        read(text, "y", None)
    assert len(read(text, "y", None, missing=["error"]).x) == 8
    assert read(text, "y", "classification").class_names == ("1.5", "2.5", "error")
    with pytest.raises(BnnvizError, match="texts such as 'error'; a regression"):
        read(text, "y", "regression")


def test_a_text_among_numbers_is_named_with_its_line():
    with pytest.raises(BnnvizError, match=r"such as 'Total' in line 8;.*--missing"):
        read(PLAIN + "Total,,99\n")


# --- files


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_names_the_encoding(encoding):
    assert is_true(data.read_table(PLAIN.encode(encoding), "y", "regression", "mine.csv"))


def test_names_with_line_breaks_are_read():
    table = read(PLAIN.replace("price", '"price\n(EUR)"'))
    assert table.x_names == ("rooms", "price (EUR)")
    with pytest.raises(BnnvizError, match="in line 9;"):
        read(PLAIN.replace("price", '"price\n(EUR)"') + "x,1,2\n")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("My results\n" + PLAIN, "has one cell and later ones have more"),
        ('[{"a": 1, "y": 2}]', "looks like JSON"),
        ("<!DOCTYPE html>\n<table>1,2</table>", "looks like HTML"),
        ("@relation x\n@data\n1,2\n", "looks like ARFF"),
    ],
    ids=["title", "json", "html", "arff"],
)
def test_what_is_no_table_is_called_what_it_is(content, says):
    with pytest.raises(BnnvizError, match=says):
        read(content)


@pytest.mark.parametrize("start", [b"BZh9", b"\xfd7zXZ\x00", b"PAR1", b"\x89HDF\r\n", b"\x93NUMPY"])
def test_bytes_of_other_programs_are_refused(start):
    with pytest.raises(BnnvizError, match="save (it|or unpack it) as CSV first"):
        data.read_table(start + bytes(40), "y", "regression", "mine.csv")
