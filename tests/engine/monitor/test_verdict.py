"""The verdict on a run in one line."""

from __future__ import annotations

from typing import Any

import pytest

from bnnviz.engine.monitor.verdict import verdict


def numbers(coverage: float, rows: int = 200, **more: Any) -> dict[str, Any]:
    """Return what a verdict reads of the summary of a regression."""
    return {"metrics": {"rows": rows, "class_names": [], "averaged": {"coverage_95": coverage}}, **more}


def classes(accuracy: float, confidence: float, **more: Any) -> dict[str, Any]:
    """Return what a verdict reads of the summary of a classification."""
    averaged = {"accuracy": accuracy}
    return {"metrics": {"rows": 200, "class_names": ["a", "b"], "averaged": averaged, "confidence": confidence}, **more}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            numbers(0.94, rhat_max=1.4, rhat_function_max=1.01),
            "usable: 95 % intervals held 94 % of 200 held-out rows; the weights have not mixed (R-hat 1.40), the"
            " predictions have (1.01)",
        ),
        (
            numbers(0.94, rhat_max=1.01, rhat_function_max=1.02),
            "usable: 95 % intervals held 94 % of 200 held-out rows; weights and predictions have mixed (R-hat 1.02)",
        ),
        (
            numbers(0.94, rhat_max=1.4, rhat_function_max=1.2),
            "usable with care: 95 % intervals held 94 % of 200 held-out rows; the weights have not mixed (R-hat 1.40),"
            " and neither have the predictions (1.20): give it more time",
        ),
        # The means of chains differ by more than the draws of each do from R-hat^2 = 2 on.
        (
            numbers(0.94, rhat_max=5.0, rhat_function_max=1.42),
            "not usable yet: 95 % intervals held 94 % of 200 held-out rows; the weights have not mixed (R-hat 5.00),"
            " and neither have the predictions (1.42): give it more time",
        ),
        (numbers(0.94, rhat_max=5.0, rhat_function_max=1.41), "usable with care: 95 % intervals held 94 %"),
        (numbers(0.8, rhat_max=1.0, rhat_function_max=1.5), "not usable: 95 % intervals held 80 %"),
        (numbers(0.8, rhat_max=1.0, rhat_function_max=1.0), "not usable: 95 % intervals held 80 %"),
        (numbers(1.0, rhat_max=1.0, rhat_function_max=1.0), "usable: 95 % intervals held 100 %"),
        # Of few rows a share is known badly.
        (numbers(0.8, rows=20, rhat_max=1.0, rhat_function_max=1.0), "not usable: 95 % intervals held 80 %"),
        (numbers(0.9, rows=20, rhat_max=1.0, rhat_function_max=1.0), "usable: 95 % intervals held 90 %"),
        (
            numbers(1.0, rows=19, rhat_max=1.0, rhat_function_max=1.0),
            "usable with care: 95 % intervals held 100 % of 19 held-out rows; 19 rows are too few to tell; weights",
        ),
        (
            numbers(1.0, rows=1, rhat_max=1.0, rhat_function_max=1.0),
            "usable with care: 95 % intervals held 100 % of 1 held-out row; 1 row is too few to tell; weights",
        ),
        (
            numbers(0.0, rows=3, rhat_max=1.0, rhat_function_max=1.0),
            "not usable: 95 % intervals held 0 % of 3 held-out rows; weights",
        ),
        (
            classes(0.9, 0.92, rhat_max=None, rhat_function_max=1.1),
            "usable with care: 90 % of 200 held-out rows were predicted right, and 92 % were expected; the predictions"
            " have not mixed (R-hat 1.10): give it more time",
        ),
        (classes(0.8, 0.99, rhat_max=1.0, rhat_function_max=1.0), "not usable: 80 %"),
    ],
)
def test_coverage_and_mixing_decide(found: dict[str, Any], said: str) -> None:
    assert verdict(found, held_out=True, converges=True).startswith(said)


def test_the_remedy_is_what_it_is_given() -> None:
    said = verdict(numbers(0.94, rhat_max=1.4, rhat_function_max=1.2), True, True, "let it go on")
    assert said.endswith("(1.20): let it go on")


def test_training_rows_and_approximations_are_named() -> None:
    found = numbers(0.95, rhat_max=1.0, rhat_function_max=1.0)
    assert verdict(found, held_out=False, converges=True).startswith(
        "usable with care: 95 % intervals held 95 % of 200 training"
    )
    found |= {"rhat_function_max": 2.0}
    approximate = verdict(found, held_out=True, converges=False)
    assert approximate.startswith("usable: ") and approximate.endswith("which more draws do not improve")


def test_a_density_has_none() -> None:
    assert verdict({"rhat_max": 1.0}, held_out=False, converges=True) is None
