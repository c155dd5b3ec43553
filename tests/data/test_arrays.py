"""Numbers as other libraries hold them: the same posterior from each, or an error."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

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


SAME = {
    "strides": ROWS[::-1][::-1],
    "big-endian": ROWS.astype(">f8"),
    "Fortran": np.asfortranarray(ROWS),
    "long double": ROWS.astype(np.longdouble),
    "float16": ROWS.astype(np.float16),
    "objects": ROWS.astype(object),
    "lists": ROWS.tolist(),
    "tensors in a list": [torch.tensor(row) for row in ROWS],
    "tensor": torch.tensor(ROWS, requires_grad=True),
    "bfloat16": torch.tensor(ROWS).bfloat16(),
    "frame": FRAME,
    "nullable": FRAME.astype("Int64"),
    "boolean": FRAME.astype({"b": "boolean"}),
    "duplicate names": FRAME.set_axis(["a", "a"], axis=1),
    "pyarrow": FRAME.astype("int64[pyarrow]") if optional.has("pyarrow") else FRAME,
    "sparse frame": pd.DataFrame(ROWS).astype(pd.SparseDtype("float64", 0.0)),
    "dummies": pd.get_dummies(pd.DataFrame({"a": [0, 1, 2], "k": ["u", "v", "u"]}))[["a", "k_u"]],
    **{f"elsewhere-{k}": given for k, given in enumerate(_elsewhere())},
    "fractions": [[Fraction(v) for v in row] for row in ROWS.tolist()],
    "decimals": pd.DataFrame([[Decimal(v) for v in row] for row in ROWS.tolist()]),
    "sparse matrix": sparse.csr_matrix(ROWS),
    "sparse array": sparse.coo_array(ROWS),
    "sparse tensor": torch.tensor(ROWS).to_sparse(),
    "CSR tensor": torch.tensor(ROWS).to_sparse_csr(),
    "masked": np.ma.array(ROWS, mask=False),
}
REFUSED = {
    "meta": torch.ones(2, 2, device="meta"),
    "nested": torch.nested.nested_tensor([torch.ones(3), torch.ones(2)], layout=torch.jagged),
    "hidden by a mask": np.ma.array(ROWS, mask=ROWS == 2),
    "words": pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]}),
    "categories": pd.DataFrame({"k": pd.Categorical(["u", "v"])}),
    "dates": pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2020-01-02"])}),
    "durations": pd.DataFrame({"t": pd.to_timedelta([1, 2], "D")}),
    "texts": np.array([["1", "2"]]),
    "bytes": np.array([[b"1"]]),
    "records": np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    "ragged": [[1, 2], [3]],
    "a word": [[1, "two"]],
    "missing": [[1.0, pd.NA]],
    "complex": np.array([[1j]]),
    "None": None,
    "dict": {"a": [1.0]},
    "generator": (row for row in ROWS),
}
#: Inputs with observations: labels in another order, and numbers whose squares single precision cannot hold.
REFUSED_PAIRS = [
    *((FRAME, pd.Series([1.0, 2.0, 3.0])[order]) for order in ORDERS),
    (ROWS * 1e20, np.ones(3)),
    (ROWS, 1e20 * np.ones(3)),
]


@pytest.mark.parametrize("name", SAME)
def test_rows_are_the_same_whatever_holds_them(name: str) -> None:
    assert np.array_equal(validation.rows("inputs", SAME[name]).double().numpy(), ROWS)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_of_numbers_is_refused(name: str) -> None:
    with pytest.raises(BnnvizError):
        validation.rows("inputs", REFUSED[name])


@pytest.mark.parametrize("given", REFUSED_PAIRS)
def test_rows_that_do_not_fit_their_observations_are_refused(given: Any) -> None:
    with pytest.raises(BnnvizError):
        bnnviz.BNN(torch.nn.Linear(2, 1), given)


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
