"""Judge a finished run of a network: whether its predictions can be used, by held-out rows and R-hat."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from bnnviz.messages import Message, Remedy

#: R-hat of predictions up to which chains agree on them.
MIXED = 1.05
#: From here on chains differ from each other by more than the draws of each do: R-hat^2 - 1 is the ratio of variances.
APART = math.sqrt(2)
_WANTED, _OFF, _ERRORS = 0.95, 0.03, 2.0  # of an interval; by how much it may be off, and standard errors besides
_CLASSES_OFF = 0.05
_FEWEST = 20  # rows: the share that 95 % intervals hold has a standard error of 5 % then


def verdict(found: dict[str, Any], held_out: bool, converges: bool, more: Iterable[Remedy] = ()) -> Message | None:
    """Return the verdict on a run by its summary; None without figures of a network. ``more`` gets more draws."""
    metrics = found.get("metrics")
    if metrics is None:
        return None
    count, classes, averaged = metrics["rows"], bool(metrics["class_names"]), metrics["averaged"]
    weights, predictions = found.get("rhat_max"), found.get("rhat_function_max")
    known = converges and predictions is not None
    mixed = not known or predictions <= MIXED
    findings = list(_of_chains(weights, predictions, converges))
    more = () if mixed else tuple(more)
    values = {"rows": count, "held_out": held_out, "rhat": weights, "rhat_functions": predictions}
    if not classes and "coverage_95" not in averaged:
        findings = ["the likelihood is a function without predictive intervals", *findings]
        return _message("not_judged", findings, more, **values)
    rows = f"{count:,} {'held-out' if held_out else 'training'} {'row' if count == 1 else 'rows'}"
    if classes:
        accuracy, expected = averaged["accuracy"], metrics["confidence"]
        spread = math.sqrt(max(expected * (1 - expected), 0.0) / count)
        calibrated = accuracy >= expected - _CLASSES_OFF - _ERRORS * spread
        said = f"{accuracy:.0%} of {rows} are classified correctly, {expected:.0%} were expected"
        values |= {"accuracy": accuracy, "expected": expected}
    else:
        coverage = averaged["coverage_95"]
        # Intervals that are too wide are harmless.
        calibrated = coverage >= _WANTED - _OFF - _ERRORS * math.sqrt(_WANTED * (1 - _WANTED) / count)
        said = f"95% intervals cover {coverage:.0%} of {rows}"
        values |= {"coverage": coverage}
    if not calibrated:
        code = "not_usable"
    elif known and predictions > APART:
        code = "not_usable_yet"
    else:
        code = "usable" if mixed and held_out and count >= _FEWEST else "usable_with_care"
    if calibrated and count < _FEWEST:
        findings.insert(0, f"{count} {'row is' if count == 1 else 'rows are'} too few to judge")
    return _message(code, [said, *findings], more, **values)


def _message(code: str, findings: list[str], more: Iterable[Remedy], **values: Any) -> Message:
    return Message(code, *more, findings="; ".join(findings) + ".", **values)


def _of_chains(weights: float | None, predictions: float | None, converges: bool) -> Iterator[str]:
    """Return whether the chains have converged, as far as is known."""
    if not converges:
        yield "the draws are an approximation, which more draws do not improve"
    elif predictions is not None:
        state = "have" if predictions <= MIXED else "have not"
        yield f"the predictions {state} converged (R-hat {predictions:.2f}" + (
            ")" if weights is None else f"; of weights {weights:.2f})"
        )
