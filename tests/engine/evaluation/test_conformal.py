"""The conformal correction, and the relevance of inputs, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import bnnviz
from bnnviz.data import DataSet
from bnnviz.errors import BnnvizError
from bnnviz.models import mlp
from bnnviz.sklearn import BNNRegressor

COEFFICIENTS = np.array([3.0, -1.0, 0.0])


def rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(0, [1.0, 2.0, 5.0], (count, 3))
    return x, x @ COEFFICIENTS + rng.normal(0, 2, count)


@pytest.fixture(scope="module")
def overconfident() -> tuple[DataSet, bnnviz.Run]:
    """Return data, and a run on them with a noise that is four times too small."""
    (x, y), (x_test, y_test) = rows(300, 0), rows(400, 1)
    data = DataSet(name="line", title="", doc="", task="regression", x_train=x, y_train=y, x_test=x_test, y_test=y_test)
    noise = 0.5 / data.standardiser.y_scale
    target = bnnviz.BNN(mlp(3, [], 1), data, "gaussian", noise_sd=noise, noise="fixed")
    return data, bnnviz.sample(target, "hmc", draws=200, warmup=100, chains=2, seed=0)


def test_corrected_intervals_cover_whatever_the_model(overconfident: tuple) -> None:
    _, run = overconfident
    x, y = rows(4000, 2)
    for level in (0.5, 0.9):
        ends = ((1 - level) / 2, (1 + level) / 2)
        plain, corrected = (run.predict(x, ends, conformal=each).quantiles for each in (False, True))
        shares = [((y > found[ends[0]]) & (y < found[ends[1]])).mean() for found in (plain, corrected)]
        assert shares[0] < level - 0.2
        assert shares[1] == pytest.approx(level, abs=0.06)  # 4 standard errors of the held-out rows at 0.9


def test_the_correction_is_the_order_statistic_of_the_held_out_rows(overconfident: tuple) -> None:
    data, run = overconfident
    x, _ = rows(5, 3)
    found, plain = run.predict(x, (0.05, 0.5, 0.95), conformal=True), run.predict(x, (0.05, 0.5, 0.95))
    held_out = run.predict(data.x_test, (0.95,))
    scores = np.sort((data.y_test - held_out.quantiles[0.95]) / held_out.sd)
    step = scores[math.ceil(401 * 0.95) - 1]
    np.testing.assert_allclose(found.quantiles[0.95], plain.quantiles[0.95] + step * plain.sd, rtol=1e-6)
    np.testing.assert_allclose(found.quantiles[0.5], plain.quantiles[0.5], rtol=1e-9)
    with pytest.raises(BnnvizError, match="at least 999 held-out rows, but there are 400"):
        run.predict(x, (0.001, 0.999), conformal=True)


def test_the_relevance_of_a_linear_function_is_its_coefficient(overconfident: tuple) -> None:
    data, run = overconfident
    found, scale = run.relevance(), data.standardiser
    expected = np.abs(COEFFICIENTS) * scale.x_scale / scale.y_scale
    # 1000 pairs of rows have a relative standard error of 2.2%; 0.02 is the posterior's.
    np.testing.assert_allclose(found.effect, expected, rtol=0.09, atol=0.02)
    assert (found.low <= found.effect).all() and (found.effect <= found.high).all()
    assert np.isnan(found.scale).all() and found.names == ["x1", "x2", "x3"]


def test_the_levels_of_a_category_are_one_column_with_its_standard_deviation_as_effect() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "noise": rng.choice(["f", "m", "i"], 300)})
    frame["colour"] = rng.choice(list("rgby"), 300)
    values = frame["colour"].map({"r": 0.0, "g": 1.0, "b": 3.0, "y": -2.0})
    y = frame["a"] + values + 0.2 * rng.normal(size=300)
    model = BNNRegressor(sampler="hmc", draws=100, warmup=200, hidden=10, random_state=0, device="cpu")
    found = model.fit(frame, y).relevance()
    assert found.names == ["a", "noise", "colour"] and found.direction == ["rises", "", ""]
    expected = [frame["a"].std() / y.std(), 0.0, values.std() / y.std()]
    np.testing.assert_allclose(found.effect, expected, rtol=0.09, atol=0.04)


def test_the_learned_scale_of_an_input_that_matters_is_the_largest() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = np.sin(2 * x[:, 1]) + 0.1 * rng.normal(size=200)
    target = bnnviz.BNN(mlp(3, [12], 1), (x, y), "gaussian", prior="learned")
    found = bnnviz.sample(target, "hmc", draws=100, warmup=200, chains=2, seed=0).relevance()
    assert found.scale.argmax() == found.effect.argmax() == 1
    assert found.direction[1] == "mixed"
    assert found.low[1] > max(found.high[0], found.high[2])
