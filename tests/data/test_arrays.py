"""Numbers as other libraries hold them: the same posterior from each, or one sentence."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

import bnnviz
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
        [[Fraction(v) for v in row] for row in ROWS.tolist()],
        pd.DataFrame([[Decimal(v) for v in row] for row in ROWS.tolist()]),
        [torch.tensor(row) for row in ROWS],
        pd.DataFrame(ROWS).astype(pd.SparseDtype("float64", 0.0)),
        np.matrix(ROWS),
        torch.tensor(ROWS).bfloat16(),
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
    assert np.array_equal(validation.rows("inputs", given).double().numpy(), ROWS)


def test_whole_numbers_beyond_those_of_64_bits_keep_their_sign():
    found = validation.rows("inputs", np.full((2, 1), 2**64 - 1, dtype=np.uint64))
    assert (found > 1.8e19).all()
    assert (validation.rows("inputs", [[10**30]]) > 9e29).all()


def test_labels_of_pandas_in_another_order_are_refused():
    """Which rows belong together is a guess; labels that are others altogether say nothing."""
    y = pd.Series([1.0, 2.0, 3.0])
    with pytest.raises(BnnvizError, match="the same labels in different orders"):
        bnnviz.BNN(torch.nn.Linear(2, 1), (FRAME, y[::-1]))
    for other in (y, y.set_axis([7, 8, 9]), y[::-1].to_numpy()[::-1]):
        assert bnnviz.BNN(torch.nn.Linear(2, 1), (FRAME, other)).y.tolist() == [1, 2, 3]


@pytest.mark.parametrize("place", [0, 1])
def test_numbers_whose_squares_overflow_are_refused(place):
    rows = [ROWS.copy(), np.ones(3)]
    rows[place] = rows[place] * 1e20
    with pytest.raises(BnnvizError, match="beyond 1e\\+18"):
        bnnviz.BNN(torch.nn.Linear(2, 1), tuple(rows))


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
        (np.array([[1j]], dtype=np.clongdouble), "complex"),
        (None, "are None, not rows of numbers"),
        ({"a": [1.0]}, "are a dict, not rows of numbers"),
        ((row for row in ROWS), "are a generator, not rows of numbers"),
        (np.array([["1"]], dtype=np.dtypes.StringDType()), "are texts such as '1'"),
        (pd.DataFrame({"t": pd.period_range("2020", periods=2, freq="D")}), "which is no number"),
        (torch.ones(2, 2, device="meta"), "on the device meta"),
        ([[1.0, pd.NA]], "hold <NA>, which is no number"),
    ],
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
