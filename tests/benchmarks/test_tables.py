"""Defaults on tables beside other libraries: how coverage and goals are computed."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
from scipy.stats import norm

from bnnviz.benchmarks.suites import tables as suite
from bnnviz.benchmarks.tables import TABLES, Table, peers


def test_sets_of_right_probabilities_hold_nine_tenths() -> None:
    probabilities = np.array([[0.6, 0.3, 0.1], [0.97, 0.02, 0.01], [0.4, 0.35, 0.25]])
    for row in probabilities:
        held = [peers.figures_of_classes(row[None], np.array([label]))["coverage"] for label in range(3)]
        assert np.dot(row, held) == pytest.approx(0.9)
    # The most probable class is in for sure where it has less than 90 %.
    assert peers.figures_of_classes(probabilities[:1], np.array([0.0]))["coverage"] == 1.0


def test_figures_of_numbers_are_those_of_a_normal_law() -> None:
    y = np.array([0.0, 1.0, 3.0])
    found = peers.figures_of_numbers(peers._normal(np.zeros(3), 1.0, y), y)
    assert found["nll"] == pytest.approx(-norm.logpdf(y).mean())
    assert found["coverage"] == pytest.approx(2 / 3)
    assert found["error"] == pytest.approx(np.sqrt(10 / 3))


def test_a_goal_is_the_better_one_of_the_linear_model_and_the_ensemble() -> None:
    def figures(nll: float, coverage: float = 0.9) -> list[dict[str, float]]:
        return [{"error": 1.0, "nll": nll + shift, "coverage": coverage} for shift in (-0.1, 0.1)]

    found = {"bnnviz": figures(0.5, 0.97), "linear": figures(0.6), "ensemble": figures(0.55), "forest": figures(0.1)}
    nll, coverage, *others = suite._rows("made up", "regression", found, ["hmc", "hmc"])
    assert nll.value == pytest.approx(0.5) and nll.goal.limit == pytest.approx(0.55) and nll.ok
    assert nll.more["se"] == pytest.approx(0.1) and nll.more["apart"] == pytest.approx(-0.05)
    assert coverage.value == pytest.approx(0.07) and not coverage.ok
    assert [row.goal for row in others] == [None] * 3


def test_splits_are_the_same_each_time_and_share_no_row() -> None:
    table = Table("classification", np.arange(40.0)[:, None], np.arange(40) % 2)
    fit, test = table.split(1)
    assert len(test) == 8 and not set(fit) & set(test) and table.y[test].mean() == 0.5
    assert np.array_equal(table.split(1)[1], test)
    assert len(TABLES) >= 12


def test_peers_predict_a_line() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = x[:, 0] + 0.1 * rng.normal(size=60)
    found = peers.predict("linear", "regression", x[:40], y[:40], x[40:], y[40:])
    assert found["error"] < 0.2 and found["nll"] < 0
