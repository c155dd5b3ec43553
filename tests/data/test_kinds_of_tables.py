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
