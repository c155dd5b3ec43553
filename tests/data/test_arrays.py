"""Numbers as other libraries hold them: the same posterior from each, or one sentence."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

import bnnviz
from bnnviz import optional
from bnnviz.data.tables import arrays
from bnnviz.errors import BnnvizError
from bnnviz.targets import validation

ROWS = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
FRAME = pd.DataFrame({"a": [0, 1, 2], "b": [1, 0, 1]})
ORDERS = [2, 1, 0], [1, 0, 2], [0, 2, 1]


def _elsewhere() -> Iterator[Any]:
    """Yield the rows as those other libraries hold them that are installed."""
    if optional.has("xarray"):
        yield importlib.import_module("xarray").DataArray(ROWS)
    if optional.has("dask"):
        yield importlib.import_module("dask.array").from_array(ROWS)
    if optional.has("zarr"):
        yield importlib.import_module("zarr").array(ROWS)
    if optional.has("polars"):
        yield importlib.import_module("polars").DataFrame(ROWS)
    if optional.has("pyarrow"):
        yield importlib.import_module("pyarrow").table({"a": ROWS[:, 0], "b": ROWS[:, 1]})


class Kind(NamedTuple):
    """What holds numbers, what is read, examples that are `ROWS`, and such that are refused, with words of why."""

    given: str
    read: str
    rows: tuple[Any, ...]
    refused: tuple[tuple[Any, str], ...] = ()


KINDS = (
    Kind(
        "NumPy arrays of any byte order, stride or numeric dtype; lists",
        "their numbers, copied",
        (
            ROWS[::-1][::-1],
            ROWS.astype(">f8"),
            ROWS.astype(">i4"),
            np.asfortranarray(ROWS),
            ROWS.astype(np.longdouble),
            ROWS.astype(np.float16),
            ROWS.astype(np.uint16),
            ROWS.astype(object),
            np.matrix(ROWS),
            ROWS.tolist(),
            list(map(tuple, ROWS)),
            [torch.tensor(row) for row in ROWS],
        ),
    ),
    Kind(
        "tensors of PyTorch of any dtype, on any device but `meta`",
        "their numbers, copied and detached",
        (
            torch.tensor(ROWS, requires_grad=True),
            torch.tensor(ROWS).bfloat16(),
            torch.tensor(ROWS).T.contiguous().T,
            torch.tensor(ROWS).half(),
        ),
        ((torch.ones(2, 2, device="meta"), "on the device meta"),),
    ),
    Kind(
        "frames and series of pandas, with nullable, Boolean or sparse columns; `get_dummies`",
        "their numbers; a missing value is nan",
        (
            FRAME,
            FRAME.astype("Int64"),
            FRAME.astype("Float64"),
            FRAME.astype({"b": bool}),
            FRAME.astype({"b": "boolean"}),
            FRAME[::-1].sort_index(),
            FRAME.set_axis(["a", "a"], axis=1),
            FRAME.set_axis(pd.MultiIndex.from_tuples([("u", "a"), ("u", "b")]), axis=1),
            FRAME.astype("int64[pyarrow]") if optional.has("pyarrow") else FRAME,
            pd.DataFrame(ROWS).astype(pd.SparseDtype("float64", 0.0)),
            pd.get_dummies(pd.DataFrame({"a": [0, 1, 2], "k": ["u", "v", "u"]}))[["a", "k_u"]],
        ),
    ),
    Kind(
        "inputs and observations of pandas with the same labels in different orders",
        "refused: put one into the order of the other",
        (),
        tuple(((FRAME, pd.Series([1.0, 2.0, 3.0])[order]), "the same labels in different orders") for order in ORDERS),
    ),
    Kind(
        "frames of polars, tables of PyArrow, arrays of xarray, Dask and zarr",
        "their numbers",
        tuple(_elsewhere()),
    ),
    Kind(
        "fractions, decimals, whole numbers of any length",
        "the nearest floating-point number",
        (
            [[Fraction(v) for v in row] for row in ROWS.tolist()],
            [[Decimal(v) for v in row] for row in ROWS.tolist()],
            pd.DataFrame([[Decimal(v) for v in row] for row in ROWS.tolist()]),
            np.array([[10**30 * int(v) for v in row] for row in ROWS.tolist()], dtype=object) // 10**30,
        ),
    ),
    Kind(
        "numbers beyond 1e18, whose squares single precision cannot hold",
        "refused",
        (),
        tuple(
            (given, "beyond 1e\\+18")
            for given in ((ROWS * 1e20, np.ones(3)), (ROWS, 1e20 * np.ones(3)), (ROWS * -1e19, np.ones(3)))
        ),
    ),
    Kind(
        "sparse matrices of SciPy, sparse tensors",
        "the dense numbers",
        (
            sparse.csr_matrix(ROWS),
            sparse.coo_array(ROWS),
            sparse.lil_matrix(ROWS),
            torch.tensor(ROWS).to_sparse(),
            torch.tensor(ROWS).to_sparse_csr(),
        ),
    ),
    Kind(
        "masked arrays",
        "their numbers; refused where a value is hidden",
        (np.ma.array(ROWS), np.ma.array(ROWS, mask=False), np.ma.masked_equal(ROWS, 7)),
        ((np.ma.array(ROWS, mask=ROWS == 2), "hide 1 values behind a mask"),),
    ),
    Kind(
        "texts, categories, dates, complex numbers, rows of different lengths",
        "refused, with the column and the remedy",
        (),
        (
            (pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]}), "in the column colour hold 'red'"),
            (pd.DataFrame({"k": pd.Categorical(["u", "v"])}), "pandas.get_dummies"),
            (pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2020-01-02"])}), "in the column t are dates"),
            (pd.DataFrame({"t": pd.to_timedelta([1, 2], "D")}), "in the column t are dates or durations"),
            (pd.DataFrame({"t": pd.period_range("2020", periods=2, freq="D")}), "which is no number"),
            (np.array([["1", "2"]]), "are texts such as '1'"),
            (np.array([["1"]], dtype=np.dtypes.StringDType()), "are texts such as '1'"),
            (np.array([[b"1"]]), "are texts such as"),
            (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), "a column a field"),
            ([[1, 2], [3]], "not all numbers in one shape"),
            ([[1, "two"]], "texts such as"),
            ([[1.0, pd.NA]], "hold <NA>, which is no number"),
            (np.array([[1j]]), "complex"),
            (np.array([[1j]], dtype=np.clongdouble), "complex"),
            (None, "are None, not rows of numbers"),
            ({"a": [1.0]}, "are a dict, not rows of numbers"),
            ((row for row in ROWS), "are a generator, not rows of numbers"),
        ),
    ),
)


@pytest.mark.parametrize(
    "given", [pytest.param(given, id=f"{kind.given[:30]}-{k}") for kind in KINDS for k, given in enumerate(kind.rows)]
)
def test_rows_are_the_same_whatever_holds_them(given: Any) -> None:
    assert np.array_equal(validation.rows("inputs", given).double().numpy(), ROWS)


@pytest.mark.parametrize(
    ("given", "words"),
    [pytest.param(*pair, id=f"{kind.given[:30]}-{k}") for kind in KINDS for k, pair in enumerate(kind.refused)],
)
def test_what_is_no_table_of_numbers_gets_one_sentence(given: Any, words: str) -> None:
    pair = isinstance(given, tuple)
    with pytest.raises(BnnvizError) as caught:
        bnnviz.BNN(torch.nn.Linear(2, 1), given) if pair else validation.rows("inputs", given)
    assert re.search(words, caught.value.sentence)
    assert "\n" not in caught.value.sentence


def test_whole_numbers_beyond_those_of_64_bits_keep_their_sign():
    found = validation.rows("inputs", np.full((2, 1), 2**64 - 1, dtype=np.uint64))
    assert (found > 1.8e19).all()
    assert (validation.rows("inputs", [[10**30]]) > 9e29).all()


def test_labels_of_pandas_that_say_nothing_of_an_order_are_taken():
    """Labels that are others altogether say nothing."""
    y = pd.Series([1.0, 2.0, 3.0])
    for other in (y, y.set_axis([7, 8, 9]), y[::-1].to_numpy()[::-1]):
        assert bnnviz.BNN(torch.nn.Linear(2, 1), (FRAME, other)).y.tolist() == [1, 2, 3]


def test_labels_stay_whole_numbers():
    for labels in (pd.Series([0, 1, 1]), pd.Series([0, 1, 1], dtype="Int64"), np.array([0, 1, 1], dtype=">i2")):
        found = validation.rows("observations", labels)
        assert not found.is_floating_point()
        assert found.tolist() == [0, 1, 1]


def test_a_missing_value_of_pandas_is_not_a_number():
    found = validation.rows("inputs", pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}))
    assert found.isnan().tolist() == [[False], [True]]


def test_an_array_is_not_changed_by_its_owner():
    mine = ROWS.copy()
    found = validation.rows("inputs", mine)
    mine[:] = 7
    assert np.array_equal(found.numpy(), ROWS)
    assert arrays.numbers("inputs", ROWS).dtype == np.float64
