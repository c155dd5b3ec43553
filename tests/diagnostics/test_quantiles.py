"""Quantiles of columns are numpy's."""

import numpy as np
import pytest

from bnnviz.diagnostics import column_quantiles


@pytest.mark.parametrize("rows", [1, 2, 7, 400])
def test_quantiles_of_columns_are_those_of_numpy(rows):
    values = np.random.default_rng(rows).standard_normal((rows, 5))
    shares = [0.0, 0.025, 0.25, 0.5, 0.975, 1.0]
    np.testing.assert_allclose(column_quantiles(values, shares), np.quantile(values, shares, axis=0), rtol=1e-13)
