"""Figures of predictions: known answers, weights, and what is undefined."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import bnnviz
from bnnviz import BnnvizError, data, diagnostics, targets
from bnnviz.engine.evaluation.predictions import scores

pytest.importorskip("sklearn")


def probabilities_of(predicted: list[float]) -> np.ndarray:
    """Return probabilities (rows, 2) from those of class 1."""
    one = np.array(predicted)
    return np.column_stack([1 - one, one])


def test_figures_of_two_classes_by_hand():
    """Of 3 ones 2 are found, of 4 zeros 3; one zero is called a one."""
    observed = np.array([1, 1, 1, 0, 0, 0, 0])
    found = diagnostics.class_metrics(probabilities_of([0.9, 0.6, 0.4, 0.7, 0.3, 0.2, 0.1]), observed)
    figures = {name: found.values[name] for name in ("accuracy", "precision", "recall", "specificity", "f1", "auc")}
    assert figures == pytest.approx(
        {"accuracy": 5 / 7, "precision": 2 / 3, "recall": 2 / 3, "specificity": 3 / 4, "f1": 2 / 3, "auc": 10 / 12}
    )
    assert found.values["brier"] == pytest.approx(np.mean(np.square([0.1, 0.4, 0.6, 0.7, 0.3, 0.2, 0.1])))
    assert found.values["nll"] == pytest.approx(-np.mean(np.log([0.9, 0.6, 0.4, 0.3, 0.7, 0.8, 0.9])))
    assert found.unknown == {}
    other = diagnostics.class_metrics(
        probabilities_of([0.9, 0.6, 0.4, 0.7, 0.3, 0.2, 0.1]), observed, positive=0
    ).values
    assert (other["recall"], other["specificity"], other["auc"]) == pytest.approx((3 / 4, 2 / 3, 10 / 12))


def test_figures_of_three_classes_by_hand():
    observed = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    predicted = np.array([0, 0, 0, 1, 1, 1, 2, 0])
    probabilities = np.full((8, 3), 0.2)
    probabilities[np.arange(8), predicted] = 0.6
    found = diagnostics.class_metrics(probabilities, observed).values
    f1 = np.array([2 * 3 / (4 + 4), 2 * 2 / (2 + 3), 2 * 1 / (2 + 1)])
    assert found["accuracy"] == 0.75
    assert found["f1"] == pytest.approx(f1.mean())
    assert found["f1_weighted"] == pytest.approx(np.average(f1, weights=[4, 2, 2]))
    assert found["brier"] == pytest.approx((6 * (0.4**2 + 2 * 0.2**2) + 2 * (0.8**2 + 0.6**2 + 0.2**2)) / 8)
    assert diagnostics.confusion(predicted, observed, 3).tolist() == [[3, 1, 0], [0, 2, 0], [1, 0, 1]]
    aucs = [0.75, (1 + 5 / 6) / 2, 0.75]  # of two values: the mean of hits and correct rejections
    assert found["auc"] == pytest.approx(np.mean(aucs))
    assert found["auc_weighted"] == pytest.approx(np.average(aucs, weights=[4, 2, 2]))


def test_figures_of_numbers_agree_with_the_closed_forms():
    """The CRPS of N(0, 1) at 0 is (sqrt(2) - 1) / sqrt(pi); a mixture of equal normals is that normal."""
    for draws in (1, 7):
        found = diagnostics.number_metrics(np.zeros((draws, 3)), np.ones(draws), np.zeros(3)).values
        assert found["crps"] == pytest.approx((np.sqrt(2) - 1) / np.sqrt(np.pi))
        assert found["nll"] == pytest.approx(0.5 * np.log(2 * np.pi))
        assert (found["mse"], found["coverage_50"]) == (0.0, 1.0)


def test_crps_and_coverage_of_a_mixture_agree_with_draws_from_it():
    rng = np.random.default_rng(1)
    means, sds, observed = rng.normal(size=(4, 1)) * 2, np.array([0.3, 1.0, 0.5, 2.0]), np.array([0.7])
    x, other = (means[rng.integers(4, size=400_000), 0] for _ in range(2))
    which = [rng.integers(4, size=400_000) for _ in range(2)]
    x, other = (means[k, 0] + sds[k] * rng.normal(size=len(k)) for k in which)
    each = np.abs(x - observed) - np.abs(x - other) / 2
    found = diagnostics.number_metrics(means, sds, observed).values
    assert abs(found["crps"] - each.mean()) / (each.std() / np.sqrt(len(each))) < 4
    # Two of 100 components far away, one of which is the first: n of N at a distance d have the CRPS d (n / N)^2.
    far = np.zeros((100, 1))
    far[[0, 50]] = 1e9
    assert diagnostics.number_metrics(far, np.ones(100), np.zeros(1)).values["crps"] == pytest.approx(4e5, rel=1e-3)
    # Rows drawn from the mixture itself are inside its intervals as often as these say.
    many = diagnostics.number_metrics(np.repeat(means, len(x), 1), sds, x).values
    for name, share in (("coverage_50", 0.5), ("coverage_90", 0.9)):
        assert abs(many[name] - share) < 4 * np.sqrt(share * (1 - share) / len(x))


@pytest.mark.parametrize(("parts", "draws"), [(1, 2), (3, 2), (5, 40)])
def test_the_crps_of_draws_is_that_of_the_mixture_without_bias(parts: int, draws: int) -> None:
    """Against the closed form of a mixture of normals, over many estimates; without the pairs' shares it is far off."""
    rng = np.random.default_rng(0)
    means, sds, observed = 2 * rng.standard_normal((parts, 3)), rng.uniform(0.5, 2, parts), rng.standard_normal(3)
    exact = diagnostics.number_metrics(means, sds, observed).values["crps"]
    found = np.array(
        [
            diagnostics.crps_of_draws(
                means[:, None] + sds[:, None, None] * rng.standard_normal((parts, draws, 3)), observed
            ).mean()
            for _ in range(4000)
        ]
    )
    assert abs(found.mean() - exact) < 4 * found.std() / np.sqrt(len(found))
    assert found.std() / np.sqrt(len(found)) < 0.02 * exact


def test_the_crps_of_counts_is_the_sum_over_counts() -> None:
    law, observed = stats.poisson([0.5, 3.0, 20.0]), np.array([1.0, 0.0, 26.0])
    k = np.arange(200)[:, None]
    exact = np.square(law.cdf(k) - (k >= observed)).sum(0).mean()
    drawn = law.rvs((20, 1, 2000, 3), random_state=np.random.default_rng(0))
    found = np.array([diagnostics.crps_of_draws(one, observed).mean() for one in drawn])
    assert abs(found.mean() - exact) < 4 * found.std(ddof=1) / np.sqrt(20)
    assert found.std(ddof=1) < 0.05 * exact


# --- measure ---------------------------------------------------------------------------------------------------------


def logits(*pairs: tuple[float, float]) -> torch.Tensor:
    """Return draws of a 1-1 network on one input: slope and bias of the logit."""
    return torch.tensor(pairs, dtype=torch.float64)


def two_classes(**more) -> targets.BNN:
    x = np.linspace(-1, 1, 20)[:, None]
    y = (x[:, 0] > 0).astype(float)
    rows = {"x_train": x, "y_train": y, "x_test": x, "y_test": y} | more
    known = data.DataSet(name="line", title="", doc="", task="classification", standardise=False, **rows)
    return targets.BNN(nn.Linear(1, 1), known, "bernoulli").to("cpu", torch.float64)


@pytest.mark.slow
def test_weights_say_how_often_a_draw_is_taken():
    """A right draw and a wrong one, nine to one: accuracy of each draw is 1 or 0, its mean the weight."""
    target, draws = two_classes(), logits((5.0, 0.0), (-5.0, 0.0))
    found = bnnviz.measure(target, draws, np.log([0.9, 0.1]) - 700, resamples=400)
    per_draw = found["per_draw"]["accuracy"]
    assert abs(per_draw["mean"] - 0.9) < 4 * np.sqrt(0.09 / 400)
    assert per_draw["sd"] == pytest.approx(0.3, abs=0.05)
    assert found["averaged"]["accuracy"] == 1.0
    assert found["weights_ess"] == pytest.approx(1 / (0.81 + 0.01))
    probability = 0.9 * torch.sigmoid(5 * target.x[:, 0]) + 0.1 * torch.sigmoid(-5 * target.x[:, 0])
    expected = -torch.where(target.y > 0, probability, 1 - probability).log().mean()
    assert found["averaged"]["nll"] == pytest.approx(float(expected))
    assert found["confusion"] == [[10, 0], [0, 10]]
    np.testing.assert_allclose(np.sum(found["confusion_per_draw"], 1), [10, 10])
    # Only one has a weight at all.
    alone = bnnviz.measure(target, draws, [0.0, -np.inf])
    assert alone["per_draw"]["accuracy"] == {"mean": 1.0, "sd": 0.0}


def test_equal_draws_are_each_taken_once():
    found = bnnviz.measure(two_classes(), logits((5.0, 0.0), (-5.0, 0.0), (5.0, 0.0), (5.0, 0.0)))
    assert (found["resamples"], found["weights_ess"]) == (4, None)
    assert found["per_draw"]["accuracy"] == {"mean": 0.75, "sd": 0.5}
    assert bnnviz.measure(two_classes(), logits((5.0, 0.0)))["per_draw"]["accuracy"] == {"mean": 1.0, "sd": None}


def test_the_averaged_predictive_is_that_of_the_scores():
    rng = torch.Generator().manual_seed(2)
    for target in (two_classes(), targets.Network(data="toy_c", hidden="4").to("cpu", torch.float64)):
        draws = torch.randn(30, target.dim, generator=rng, dtype=torch.float64)
        averaged = bnnviz.measure(target, draws)["averaged"]
        assert {name: averaged[name] for name in scores(target, draws)} == pytest.approx(scores(target, draws))
        weights = torch.rand(30, generator=rng, dtype=torch.float64)
        repeated = draws.repeat_interleave((10 * weights).long() + 1, 0)
        same = bnnviz.measure(target, draws, torch.log((10 * weights).long() + 1))["averaged"]
        for name, value in scores(target, repeated).items():
            assert same[name] == pytest.approx(value)


def test_units_are_the_datas_own_but_for_the_nll():
    x = np.linspace(0, 1, 9)[:, None]
    known = data.DataSet(
        name="ten", title="", doc="", task="regression", x_train=x, y_train=10 * x[:, 0], x_test=x, y_test=10 * x[:, 0]
    )
    target = targets.BNN(nn.Linear(1, 1), known, noise_sd=0.5).to("cpu", torch.float64)
    found = bnnviz.measure(target, logits((0.0, 0.0)))["per_draw"]
    assert found["mse"]["mean"] == pytest.approx(np.var(10 * x))
    assert found["nll"]["mean"] == pytest.approx(0.5 / 0.25 + np.log(0.5 * np.sqrt(2 * np.pi)))


def test_what_cannot_be_measured_is_refused():
    target, draws = two_classes(), logits((1.0, 0.0))
    for call, words in (
        (lambda: bnnviz.measure(targets.Gaussian(), draws), "a network on data"),
        (lambda: bnnviz.measure(target), "Give the draws"),
        (lambda: bnnviz.measure(target, draws[:0]), "no draws to measure"),
        (lambda: bnnviz.measure(target, draws, [0.0, 1.0]), "1 draws and 2 weights"),
        (lambda: bnnviz.measure(target, draws, [np.nan]), "zero or invalid"),
        (lambda: bnnviz.measure(target, draws, [-np.inf]), "zero or invalid"),
    ):
        with pytest.raises(BnnvizError, match=words):
            call()


def test_the_published_rows_of_the_starting_points_are_reproduced():
    """Tables 6 and 7 of the PMCnet paper, ADAM-MLE: the published weights, each split by its own statistics."""
    known = {
        "pmcnet_ionosphere": {
            "auc": 0.9796,
            "precision": 0.8077,
            "recall": 0.9545,
            "specificity": 0.8980,
            "accuracy": 0.9155,
            "f1": 0.8750,
        },
        "pmcnet_glass": {"auc_weighted": 0.8361, "f1": 0.7240, "accuracy": 0.6744},  # printed: .6742, no share of 43
    }
    for name, figures in known.items():
        settings = {"data": name, "scaling": "own", "initial_weights": "published"}
        target = targets.Network(**settings, hidden=data.published_weights(name)[0].hidden).to("cpu", torch.float64)
        found = bnnviz.measure(target, target.initial(1, torch.Generator()))
        assert {key: round(found["averaged"][key], 4) for key in figures} == figures
        assert {key: round(found["per_draw"][key]["mean"], 4) for key in figures} == figures


@pytest.mark.parametrize("rows", [1, 2, 7, 400])
def test_quantiles_of_columns_are_those_of_numpy(rows):
    values = np.random.default_rng(rows).standard_normal((rows, 5))
    shares = [0.0, 0.025, 0.25, 0.5, 0.975, 1.0]
    np.testing.assert_allclose(
        diagnostics.column_quantiles(values, shares), np.quantile(values, shares, axis=0), rtol=1e-13
    )
