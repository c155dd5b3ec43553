"""Judge a finished run of a network in one line: whether its predictions can be used, by held-out rows and R-hat."""

from __future__ import annotations

import math
from typing import Any

MORE = "give it more time"
#: R-hat of predictions up to which chains agree on them.
MIXED = 1.05
#: From here on chains differ from each other by more than the draws of each do: R-hat^2 - 1 is the ratio of variances.
APART = math.sqrt(2)
_WANTED, _OFF, _ERRORS = 0.95, 0.03, 2.0  # of an interval; by how much it may be off, and standard errors besides
_CLASSES_OFF = 0.05
_FEWEST = 20  # rows: the share that 95 % intervals hold has a standard error of 5 % then


def verdict(found: dict[str, Any], held_out: bool, converges: bool, more: str = MORE) -> str | None:
    """Return the verdict on a run by its summary; None where that has no figures of a network."""
    metrics = found.get("metrics")
    if metrics is None:
        return None
    count = metrics["rows"]
    rows = f"{count:,} {'held-out' if held_out else 'training'} {'row' if count == 1 else 'rows'}"
    if not metrics["class_names"] and "coverage_95" not in metrics["averaged"]:
        chains = "; ".join(_of_chains(found, converges, more)[1])
        return f"not judged: the likelihood is a function, which gives no intervals of observations; {chains}"
    calibrated, said = (_of_classes if metrics["class_names"] else _of_numbers)(metrics, rows)
    mixed, of_chains = _of_chains(found, converges, more)
    apart = converges and (found.get("rhat_function_max") or 0.0) > APART
    word = "not usable" if not calibrated else "not usable yet" if apart else "usable with care"
    sure = mixed and held_out and count >= _FEWEST
    word = "usable" if word == "usable with care" and sure else word
    few = (
        [f"{count} {'row is' if count == 1 else 'rows are'} too few to tell"] if calibrated and count < _FEWEST else []
    )
    return f"{word}: {'; '.join([said, *few, *of_chains])}"


def _of_numbers(metrics: dict[str, Any], rows: str) -> tuple[bool, str]:
    coverage = metrics["averaged"]["coverage_95"]
    off = _OFF + _ERRORS * math.sqrt(_WANTED * (1 - _WANTED) / metrics["rows"])
    # Intervals that hold too much are wide, and do no harm.
    return coverage >= _WANTED - off, f"95 % intervals held {_percent(coverage)} of {rows}"


def _of_classes(metrics: dict[str, Any], rows: str) -> tuple[bool, str]:
    accuracy, expected = metrics["averaged"]["accuracy"], metrics["confidence"]
    spread = math.sqrt(max(expected * (1 - expected), 0.0) / metrics["rows"])
    said = f"{_percent(accuracy)} of {rows} were predicted right, and {_percent(expected)} were expected"
    return accuracy >= expected - _CLASSES_OFF - _ERRORS * spread, said


def _of_chains(found: dict[str, Any], converges: bool, more: str) -> tuple[bool, list[str]]:
    """Return whether chains agree on predictions as far as is known, and what is to be said of that."""
    weights, predictions = found.get("rhat_max"), found.get("rhat_function_max")
    if not converges:
        return True, ["its chains are an approximation, which more draws do not improve"]
    if predictions is None:
        return True, []
    weights_mixed, mixed = weights is not None and weights <= MIXED, predictions <= MIXED
    if mixed and weights_mixed:
        return True, [f"weights and predictions have mixed (R-hat {max(weights, predictions):.2f})"]
    if weights_mixed or weights is None:
        word = "have" if mixed else "have not"
        said = f"the predictions {word} mixed (R-hat {predictions:.2f})"
    else:
        word = "the predictions have" if mixed else "and neither have the predictions"
        said = f"the weights have not mixed (R-hat {weights:.2f}), {word} ({predictions:.2f})"
    return mixed, [said if mixed else f"{said}: {more}"]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
