"""Each column is described whatever is wrong with the others, and each question's answers answer it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from bnnviz import data
from bnnviz.data.tables.new_rows import read_rows, read_texts
from bnnviz.data.tables.questions import TableQuestion
from bnnviz.data.tables.read_table import overview
from bnnviz.errors import BnnvizError
from tests.data.odd_tables import KINDS, column

ROWS = 12
ODD = {
    "id": range(ROWS),
    "flat id": [f"A{i:03d}" for i in range(ROWS)],
    "size": [f"{i / 7:.3f}" for i in range(ROWS)],
    "colour": ["red", "green", ""] * 4,
    "day": [f"2024-01-{i + 1:02d}" for i in range(ROWS)],
    "remark": [f"text number {i}" for i in range(ROWS)],
    "mixed": [*range(ROWS - 1), "unknown"],
    "same": ["1"] * ROWS,
    "nothing": [""] * ROWS,
    "sensor": [*[f"{i / 5:.1f}" for i in range(ROWS - 1)], "-999"],
    "price": [f"{i * i / 3:.2f}" for i in range(ROWS)],
}
FILE = "\n".join([",".join(ODD), *(",".join(map(str, row)) for row in zip(*ODD.values(), strict=True))]).encode()
KINDS_OF = {
    "id": "row number",
    "flat id": "row number",
    "size": "number",
    "colour": "category",
    "day": "date",
    "remark": "text",
    "mixed": "text",
    "same": "constant",
    "nothing": "empty",
    "sensor": "number",
    "price": "number",
}
REFUSED = ("remark", "mixed")


def test_each_column_is_described_whatever_the_others_are() -> None:
    found = overview(FILE, "odd.csv")
    columns = {each.name: each for each in found.columns}
    assert {name: each.kind for name, each in columns.items()} == KINDS_OF
    assert found.rows == ROWS and found.target == "price"
    assert columns["colour"].missing == 4 and columns["colour"].levels == 2 and columns["nothing"].missing == ROWS
    assert columns["size"].examples == ("0", "0.143", "0.286") or columns["size"].examples[1] == "0.143"
    assert [name for name, each in columns.items() if each.is_refused] == list(REFUSED)
    assert [name for name, each in columns.items() if each.is_passed_over] == ["id", "flat id", "same", "nothing"]
    assert overview(FILE, missing=("-999",)).columns[9].missing == 1


def test_what_is_read_without_the_refused_columns_agrees_with_the_overview() -> None:
    table = data.read_table(FILE, "price", leave_out=REFUSED, missing=("-999",))
    colours = ("colour=(missing)", "colour=green", "colour=red")
    assert table.x_names == ("size", "day", "sensor", "sensor is missing", *colours)
    assert any("remark, mixed" in note for note in table.notes)


def test_a_decimal_mark_that_one_column_shows_holds_for_the_others() -> None:
    text = "a;b;y\n" + "".join(f"{i},5;1.{i}00;{i * i},25\n" for i in range(8))
    columns = {each.name: each for each in overview(text.encode()).columns}
    assert columns["b"].remark == ""
    open_text = "a,b\n" + "".join(f'{i}.5,"{i + 1},{i}00"\n' for i in range(1, 8))
    assert overview(open_text.encode()).columns[1].kind == "number"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(each.content, id=f"{kind[:30]}-{k}")
        for kind, found in KINDS.items()
        for k, each in enumerate(found)
        if not each.names and not each.options
    ],
)
def test_each_answer_answers_its_question(content: str | bytes) -> None:
    content = content.encode() if isinstance(content, str) else content
    try:
        data.read_table(content, "y", "regression", "mine.csv")
    except TableQuestion as error:
        assert error.sentence.startswith(error.question) and error.question[-1] in ".?"
        for answer in error.answers:
            if "y" in answer.options.get("leave_out", ()):
                continue  # the target stays
            given = {"task": "regression"} | answer.options
            try:
                data.read_table(content, "y", name="mine.csv", **given)
            except BnnvizError as other:
                assert other.sentence != error.sentence, answer
    except BnnvizError:
        pass


def test_a_question_survives_pickling() -> None:
    with pytest.raises(TableQuestion) as caught:
        data.read_table(column(["1", "2", "low"]).encode(), "y")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.sentence == caught.value.sentence and again.answers == caught.value.answers


def test_a_row_is_encoded_as_the_file_is() -> None:
    table = data.read_table(FILE, "price", leave_out=(*REFUSED, "day"), missing=("-999",))
    row, wrong = read_texts({"size": "0.25", "colour": "red", "sensor": "3"}, table)
    assert np.array_equal(row, read_rows(b"size,colour,sensor\n0.25,red,3\n", table).x[0]) and not wrong
