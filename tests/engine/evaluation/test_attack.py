"""The fast gradient sign method, and how sure a network says it is: linear networks whose answer is known."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import nn

import bnnviz
from bnnviz import BnnvizError, data, diagnostics, targets
from bnnviz.engine.evaluation import attack as attacking
from bnnviz.engine.evaluation.metrics import predict

pytest.importorskip("sklearn")
pytest.importorskip("arviz_stats")
STEPS = (0.0, 0.1, 0.3, 0.6)


def two_classes(inputs: int = 4, rows: int = 60, seed: int = 0) -> tuple[targets.BNN, np.ndarray, np.ndarray]:
    """Return a logistic regression, its inputs and its classes, which a line through 0 tells apart."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, inputs))
    y = (x @ np.linspace(1, 2, inputs) > 0).astype(float)
    return targets.BNN(nn.Linear(inputs, 1), (x, y), "bernoulli").to("cpu", torch.float64), x, y


def near(spread: float, count: int, inputs: int = 4) -> np.ndarray:
    """Return weights and a bias (count, inputs + 1) about the line that tells the classes apart."""
    centre = np.append(np.linspace(1, 2, inputs), 0.0)
    return centre + spread * np.random.default_rng(1).normal(size=(count, inputs + 1))


def images(seed: int, rows: int = 40, **more) -> data.ImageSet:
    """Return small images of two channels and three classes, with scales of their own."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 256, (rows, 2, 3, 3), dtype=np.uint8), rng.integers(0, 3, rows)
    scale = {"mean": (0.3, 0.6), "sd": (0.2, 0.4)} | more
    rows = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
    return data.ImageSet(name="small", title="", doc="", class_names=("a", "b", "c"), **rows, **scale)


def of_images(seed: int = 0) -> tuple[targets.BNN, np.ndarray]:
    """Return a linear network of small images and some draws."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(18, 3))
    target = targets.BNN(module, images(seed), "categorical").to("cpu", torch.float64)
    return target, np.random.default_rng(2).normal(size=(5, target.dim))


# --- the attack


def test_without_a_step_accuracy_is_the_plain_one():
    target, _, _ = two_classes()
    draws = near(0.5, 6)
    found = bnnviz.attack(target, draws, eps=STEPS, judge="mean")
    plain = bnnviz.measure(target, draws)["averaged"]["accuracy"]
    assert found["accuracy"][0] == plain
    assert found["accuracy"][0] > found["accuracy"][-1]
    target, draws = of_images()
    found = bnnviz.attack(target, draws, judge="mean")
    mean = predict(target, torch.as_tensor(draws)).mean(0)
    assert found["accuracy"][0] == (mean.argmax(1) == target.data_set.y_test).mean()
    assert found["entropy"][0] == pytest.approx(diagnostics.predictive_entropy(mean[None]).mean(), rel=1e-6)
    shown = found["examples"]
    np.testing.assert_allclose(shown["inputs"][0] * 255, target.data_set.x_test[:6], atol=1e-3)
    assert shown["predicted"][0].tolist() == mean[:6].argmax(1).tolist()


def test_the_step_on_a_line_is_known():
    """Against its own attacker a row is right while its margin is above eps |w|_1; another loses eps sign(w) w'."""
    target, x, y = two_classes()
    draws = near(0.8, 2)
    for judge, number in (("attacker", 0), ("others", 1)):
        found = bnnviz.attack(target, draws, eps=STEPS, judge=judge, examples=3)
        margin = (2 * y - 1) * (x @ draws[number, :4] + draws[number, 4])
        lost = draws[number, :4] @ np.sign(draws[0, :4])
        right = [(margin > step * lost).mean() for step in STEPS]
        assert found["accuracy"] == right
        probability = expit(margin - 0.6 * lost)
        entropy = diagnostics.predictive_entropy(np.stack([probability, 1 - probability], -1)[None])
        assert found["entropy"][-1] == pytest.approx(entropy.mean())
        assert found["entropy_low"][-1] < entropy.mean() < found["entropy_high"][-1]
        assert (found["accuracy_low"][-1], found["accuracy_high"][-1]) == diagnostics.share_interval(
            right[-1] * len(y), len(y)
        )
        assert (found["judges"], found["unit"], found["unmoved"]) == (1, "scaled", 0.0)
    step = -(2 * y[:3, None] - 1) * np.sign(draws[0, :4])
    np.testing.assert_allclose(found["examples"]["inputs"][2], x[:3] + 0.3 * step, rtol=1e-6)


def test_the_softmax_of_a_linear_network_has_a_known_derivative():
    target, draws = of_images()
    x, y = (torch.as_tensor(rows) for rows in target.data_set.scaled("test"))
    theta = torch.as_tensor(draws[:1])
    weight, bias = theta[0, :54].view(3, 18), theta[0, 54:]
    probability = torch.softmax(x.double().flatten(1) @ weight.T + bias, -1)
    known = (probability - nn.functional.one_hot(y, 3)) @ weight
    found = attacking._ascent(target, theta, x.double(), y)
    np.testing.assert_allclose(found.flatten(1), known, rtol=1e-9, atol=1e-12)


def test_images_are_attacked_in_pixels_and_stay_images():
    target, draws = of_images()
    found = bnnviz.attack(target, draws, eps=(0.0, 0.1), attacker=3, examples=40)
    before, after = found["examples"]["inputs"].astype(float)
    x, y = (torch.as_tensor(rows) for rows in target.data_set.scaled("test"))
    sign = attacking._ascent(target, torch.as_tensor(draws[3:4]), x.double(), y).sign().numpy()
    np.testing.assert_allclose(after, np.clip(before + 0.1 * sign, 0.0, 1.0), atol=1e-6)
    assert (after.min(), after.max(), found["unit"], found["judges"]) == (0.0, 1.0, "pixels", 4)
    # With one sd for both channels the step would be another one on one of them.
    assert np.abs(after - before).max() == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"judge": "nobody"}, "judge"),
        ({"attacker": 3}, "attacker"),
        ({"attacker": "first"}, "attacker"),
        ({"eps": ()}, "eps"),
        ({"eps": (-0.1,)}, "eps"),
        ({"rows": [60]}, "rows"),
        ({"rows": 0}, "rows"),
        ({"draws": np.zeros((1, 5))}, "judge"),
    ],
)
def test_what_does_not_fit_is_refused(options, field):
    target, _, _ = two_classes()
    with pytest.raises(BnnvizError) as caught:
        bnnviz.attack(target, **({"draws": near(0.3, 3)} | options))
    assert caught.value.field == field


# --- uncertainty


def test_uncertainty_says_what_the_arrays_say():
    target, _, y = two_classes()
    draws = near(1.0, 40).reshape(2, 20, 5)
    outside = 0.1 * np.random.default_rng(4).normal(size=(30, 4))
    found = bnnviz.uncertainty(target, draws, ood=outside, rows=[3, 1], base=2)
    probabilities = predict(target, torch.as_tensor(draws.reshape(-1, 5)))
    summary, arrays = found["summary"], found["arrays"]
    assert json.loads(json.dumps(summary)) == summary
    np.testing.assert_allclose(arrays["test"]["entropy"], diagnostics.predictive_entropy(probabilities, 2))
    np.testing.assert_allclose(arrays["test"]["mutual"], diagnostics.mutual_information(probabilities, 2), atol=1e-12)
    assert summary["test"]["expected"] == pytest.approx(diagnostics.expected_entropy(probabilities, 2).mean())
    measured = bnnviz.measure(target, draws)["averaged"]
    for name in ("accuracy", "nll", "brier"):
        assert summary[name] == pytest.approx(measured[name])
    assert summary["ece"] == pytest.approx(diagnostics.calibration_error(probabilities.mean(0), y, 10))
    known = diagnostics.detection(arrays["test"]["entropy"], arrays["ood"]["entropy"])._asdict()
    assert summary["detection"] == known
    # Rows near the line are the ones that the network is not sure of.
    assert summary["detection"]["auroc"] > 0.7
    ess = diagnostics.function_ess(probabilities[:, np.linspace(0, 59, 50).astype(int)].reshape(2, 20, 50, 2))
    assert (summary["function_ess"]["median"], summary["chains"]) == (ess.median, 2)
    intervals = diagnostics.class_intervals(probabilities[:, [3, 1]])
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(arrays["intervals"][name], getattr(intervals, name))
    assert arrays["intervals"]["observed"].tolist() == y[[3, 1]].tolist()


def test_weights_of_draws_count_and_leave_no_chain():
    target, _, _ = two_classes()
    draws = near(1.0, 4)
    found = bnnviz.uncertainty(target, draws, np.log([0.5, 0.5, 1e-9, 1e-300]))
    alone = bnnviz.uncertainty(target, draws[:2])
    np.testing.assert_allclose(found["arrays"]["test"]["entropy"], alone["arrays"]["test"]["entropy"], rtol=1e-6)
    assert found["summary"]["function_ess"] is None
    assert "weights_ess" in found["summary"]["unknown"]["function_ess"]
    assert alone["summary"]["function_ess"]["median"] is None
    assert "four draws" in alone["summary"]["unknown"]["function_ess"]


@pytest.mark.slow
def test_a_run_is_attacked_and_asked():
    settings = {"data": "moons", "hidden": "4"}
    run = bnnviz.sample("network", "sgld", draws=15, warmup=5, chains=2, target_settings=settings)
    found = bnnviz.attack(run, rows=20, eps=(0.0, 0.5))
    assert found["judges"] == 29
    assert found["accuracy"][1] < found["accuracy"][0]
    summary = bnnviz.uncertainty(run)["summary"]
    assert (summary["chains"], summary["draws"], summary["ood"]) == (2, 30, None)
    assert summary["function_ess"]["median"] > 0
