"""Numbers as other libraries hold them: the same posterior from each, or one sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from bnnviz.data.tables import arrays
from bnnviz.errors import BnnvizError
from bnnviz.targets import validation

ROWS = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
FRAME = pd.DataFrame({"a": [0, 1, 2], "b": [1, 0, 1]})


@pytest.mark.parametrize(
    "given",
    [
        ROWS[::-1][::-1],
        ROWS.astype(">f8"),
        ROWS.astype(">i4"),
        np.asfortranarray(ROWS),
        ROWS.astype(np.longdouble),
        ROWS.astype(np.uint16),
        ROWS.astype(object),
        np.ma.array(ROWS),
        np.ma.array(ROWS, mask=False),
        sparse.csr_matrix(ROWS),
        sparse.coo_array(ROWS),
        torch.tensor(ROWS).to_sparse(),
        torch.tensor(ROWS, requires_grad=True),
        FRAME,
        FRAME.astype("Int64"),
        FRAME.astype("Float64"),
        FRAME.astype({"b": bool}),
        FRAME.astype({"b": "boolean"}),
        FRAME[::-1].sort_index(),
        pd.get_dummies(pd.DataFrame({"a": [0, 1, 2], "k": ["u", "v", "u"]}))[["a", "k_u"]],
    ],
    ids=lambda given: f"{type(given).__name__}-{getattr(given, 'dtype', '')}",
)
def test_rows_are_the_same_whatever_holds_them(given):
    assert np.array_equal(validation.rows("inputs", given).numpy(), ROWS)


def test_labels_stay_whole_numbers():
    for labels in (pd.Series([0, 1, 1]), pd.Series([0, 1, 1], dtype="Int64"), np.array([0, 1, 1], dtype=">i2")):
        found = validation.rows("observations", labels)
        assert not found.is_floating_point()
        assert found.tolist() == [0, 1, 1]


def test_a_missing_value_of_pandas_is_not_a_number():
    found = validation.rows("inputs", pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}))
    assert found.isnan().tolist() == [[False], [True]]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ma.array(ROWS, mask=ROWS == 2), "hide 1 values behind a mask"),
        (pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]}), "in the column colour hold 'red'"),
        (pd.DataFrame({"k": pd.Categorical(["u", "v"])}), "pandas.get_dummies"),
        (pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2020-01-02"])}), "in the column t are dates"),
        (np.array([["1", "2"]]), "are texts such as '1'"),
        (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), "a column a field"),
        ([[1, 2], [3]], "not all numbers in one shape"),
        ([[1, "two"]], "texts such as"),
        (np.array([[1j]]), "complex"),
    ],
    ids=["masked", "text column", "categories", "dates", "texts", "fields", "ragged", "mixed list", "complex"],
)
def test_what_is_no_table_of_numbers_gets_one_sentence(given, words):
    with pytest.raises(BnnvizError) as caught:
        validation.rows("inputs", given)
    assert words in caught.value.sentence
    assert "\n" not in caught.value.sentence


def test_an_array_is_not_changed_by_its_owner():
    mine = ROWS.copy()
    found = validation.rows("inputs", mine)
    mine[:] = 7
    assert np.array_equal(found.numpy(), ROWS)
    assert arrays.numbers("inputs", ROWS).dtype == np.float64
