"""The verdict on a run in one line."""

from __future__ import annotations

from typing import Any

import pytest

from bnnviz.engine.monitor.verdict import verdict
from bnnviz.messages import Remedy

MORE = Remedy("make more draws", {"draws": 400})


def numbers(coverage: float, rows: int = 200, **more: Any) -> dict[str, Any]:
    """Return what a verdict reads of the summary of a regression."""
    return {"metrics": {"rows": rows, "class_names": [], "averaged": {"coverage_95": coverage}}, **more}


def classes(accuracy: float, confidence: float, **more: Any) -> dict[str, Any]:
    """Return what a verdict reads of the summary of a classification."""
    averaged = {"accuracy": accuracy}
    return {"metrics": {"rows": 200, "class_names": ["a", "b"], "averaged": averaged, "confidence": confidence}, **more}


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (numbers(0.94, rhat_max=1.4, rhat_function_max=1.01), "usable"),
        (numbers(0.94, rhat_max=1.4, rhat_function_max=1.2), "usable_with_care"),
        # Means of chains differ by more than the draws of each do from R-hat^2 = 2.
        (numbers(0.94, rhat_max=5.0, rhat_function_max=1.42), "not_usable_yet"),
        (numbers(0.94, rhat_max=5.0, rhat_function_max=1.41), "usable_with_care"),
        (numbers(0.8, rhat_max=1.0, rhat_function_max=1.5), "not_usable"),
        (numbers(1.0, rhat_max=1.0, rhat_function_max=1.0), "usable"),
        # A share of few rows is uncertain.
        (numbers(0.8, rows=20, rhat_max=1.0, rhat_function_max=1.0), "not_usable"),
        (numbers(0.9, rows=20, rhat_max=1.0, rhat_function_max=1.0), "usable"),
        (numbers(1.0, rows=19, rhat_max=1.0, rhat_function_max=1.0), "usable_with_care"),
        (numbers(0.0, rows=3, rhat_max=1.0, rhat_function_max=1.0), "not_usable"),
        (classes(0.9, 0.92, rhat_max=None, rhat_function_max=1.1), "usable_with_care"),
        (classes(0.8, 0.99, rhat_max=1.0, rhat_function_max=1.0), "not_usable"),
    ],
)
def test_coverage_and_convergence_decide(found: dict[str, Any], code: str) -> None:
    judged = verdict(found, held_out=True, converges=True, more=[MORE])
    assert judged.code == code
    assert judged.remedies == ((MORE,) if found["rhat_function_max"] > 1.05 else ())
    assert f"{found['metrics']['rows']} held-out row" in str(judged)


def test_training_rows_are_used_with_care_and_approximations_need_no_more_draws() -> None:
    found = numbers(0.95, rhat_max=1.0, rhat_function_max=1.0)
    assert verdict(found, held_out=False, converges=True).code == "usable_with_care"
    approximate = verdict(found | {"rhat_function_max": 2.0}, held_out=True, converges=False, more=[MORE])
    assert approximate.code == "usable" and not approximate.remedies


def test_a_density_has_none() -> None:
    assert verdict({"rhat_max": 1.0}, held_out=False, converges=True) is None
