"""The verdict on a run by its held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bnnviz
from bnnviz.data import read_table
from bnnviz.engine.evaluation.baselines import baselines, compared
from bnnviz.engine.monitor.verdict import LEVELS, verdict
from bnnviz.messages import Remedy

MORE = Remedy("make more draws", {"draws": 400})


def numbers(
    ratio: float, half: float = 0.5, most: float = 0.9, rows: int = 400, rhat: float = 1.0, se: float = 0.02
) -> dict[str, Any]:
    """Return what a verdict reads of the summary of a regression."""
    averaged = {"coverage_50": half, "coverage_90": most}
    score = {"model": "boosting", "ratio": ratio, "se": se}
    metrics = {"rows": rows, "class_names": [], "averaged": averaged}
    return {"metrics": metrics, "relative_score": score, "rhat_function_max": rhat}


def counts(half: float, expected: float) -> dict[str, Any]:
    """Return the same for counts, whose intervals cover more than their level."""
    found = numbers(0.7, half)
    found["metrics"]["averaged"] |= {"coverage_50_expected": expected, "coverage_90_expected": 0.9}
    return found


def classes(ratio: float, accuracy: float, confidence: float, recall: float = 0.9) -> dict[str, Any]:
    """Return what a verdict reads of the summary of a classification."""
    averaged = {"accuracy": accuracy}
    metrics = {"rows": 400, "class_names": ["a", "b"], "averaged": averaged, "confidence": confidence}
    metrics["rare_classes"] = [{"name": "b", "rows": 8, "recall": recall, "average_precision": 0.5}]
    return {"metrics": metrics, "relative_score": {"model": "boosting", "ratio": ratio, "se": 0.02}}


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (numbers(0.7), "usable"),
        (numbers(1.0), "usable"),
        (numbers(1.2), "usable_with_care"),
        (numbers(1.6), "not_usable_yet"),
        (numbers(1.6, se=0.4), "usable_with_care"),
        (numbers(5.0), "not_usable"),
        # R-hat qualifies the verdict and does not decide it.
        (numbers(0.7, rhat=3.0), "usable"),
        # Intervals may be too narrow or too wide.
        (numbers(0.7, half=0.35), "usable_with_care"),
        (numbers(0.7, half=0.95), "not_usable_yet"),
        (numbers(0.7, most=0.6), "not_usable_yet"),
        (numbers(0.7, most=0.8), "usable_with_care"),
        # A share of few rows is uncertain.
        (numbers(0.7, most=0.8, rows=25), "usable"),
        (numbers(0.7, rows=19), "usable_with_care"),
        (classes(0.5, 0.9, 0.92), "usable"),
        (classes(0.5, 0.8, 0.99), "usable_with_care"),
        (classes(0.5, 0.99, 0.6), "not_usable_yet"),
        (classes(1.2, 0.9, 0.92), "usable_with_care"),
        (classes(0.5, 0.9, 0.92, recall=0.1), "usable_with_care"),
        (counts(0.65, 0.65), "usable"),
        (counts(0.65, 0.52), "usable_with_care"),
    ],
)
def test_scores_and_intervals_decide(found: dict[str, Any], code: str) -> None:
    judged = verdict(found, held_out=True, converges=True, more=[MORE])
    assert judged.code == code
    rhat, bad = found.get("rhat_function_max"), LEVELS.index(code) >= 2
    if bad and rhat == 1.0:  # more draws of chains that agree do not help
        assert judged.remedies and MORE not in judged.remedies
    else:
        assert judged.remedies == ((MORE,) if bad or rhat == 3.0 else ())


def test_it_is_monotone_in_the_score() -> None:
    codes = [verdict(numbers(ratio), held_out=True, converges=True).code for ratio in np.linspace(0.5, 5, 50)]
    assert sorted(codes, key=LEVELS.index) == codes and set(codes) == set(LEVELS)


def test_training_rows_are_used_with_care_and_approximations_need_no_more_draws() -> None:
    assert verdict(numbers(0.7), held_out=False, converges=True).code == "usable_with_care"
    approximate = verdict(numbers(0.7, rhat=2.0), held_out=True, converges=False, more=[MORE])
    assert approximate.code == "usable" and not approximate.remedies


def test_a_density_has_none() -> None:
    assert verdict({"rhat_max": 1.0}, held_out=False, converges=True) is None


def test_baselines_are_the_models_of_their_names() -> None:
    """On a linear law with normal noise the scores are those of the truth."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 2))
    y = 100 + 30 * x[:, 0] + 10 * rng.normal(size=3000)
    rows = "\n".join(f"{a},{b},{c}" for (a, b), c in zip(x, y, strict=True))
    data = read_table(f"a,b,y\n{rows}".encode(), "y").load()
    models = baselines(data)
    found = {name: each.values for name, each in models.items()}
    crps = 10 / np.sqrt(np.pi)
    assert found["linear model"]["crps"] == pytest.approx(crps, rel=0.1)
    assert found["mean"]["crps"] == pytest.approx(crps * np.sqrt(10), rel=0.1)
    assert found["linear model"]["rmse"] == pytest.approx(10, rel=0.1)
    assert crps < found["boosting"]["crps"] < 1.4 * crps
    # The scores of the linear model itself, and with an error that is independent of its own.
    scores, n = models["linear model"].scores, len(data.y_test)
    assert compared(scores, data)["relative_score"] == {"model": "linear model", "ratio": 1.0, "se": 0.0}
    other = compared(scores * (1 + 0.5 * rng.standard_normal(n)), data)["relative_score"]
    error = 0.5 * np.sqrt(np.square(scores).mean() / n) / scores.mean()
    assert abs(other["ratio"] - 1) < 4 * error and other["se"] == pytest.approx(error, rel=0.2)
    assert found["linear model"]["nll"] == pytest.approx(0.5 * np.log(2 * np.pi * np.e * 0.1), abs=0.1)


def test_a_fit_that_has_learned_nothing_is_not_usable() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(400, 2))
    y = 100 * x[:, 0] + 50 * np.sin(6 * x[:, 1]) + rng.normal(0, 5, 400)
    rows = "\n".join(f"{a},{b},{c}" for (a, b), c in zip(x, y, strict=True))
    run = bnnviz.sample(read_table(f"a,b,y\n{rows}".encode(), "y"), "sgld", draws=20, warmup=0, chains=2)
    assert LEVELS.index(run.verdict().code) >= 2
