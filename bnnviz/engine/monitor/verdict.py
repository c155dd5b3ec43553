"""Judge a network's predictions of held-out rows: against simple models, by its intervals, and by R-hat."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from bnnviz.messages import Message, Remedy

#: Maximum R-hat of predictions on which chains agree.
MIXED = 1.05
#: The verdicts, best first.
LEVELS = ("usable", "usable_with_care", "not_usable_yet", "not_usable")
_RATIOS = (1.05, 1.3, 2.0)  # maximum ratio of our score to the best simple model's, plus a standard error, by verdict
_OFF, _FAR_OFF, _ERRORS = 0.05, 0.2, 2.0  # tolerated errors of a share, plus standard errors
_FOUND = 0.5  # minimum recall of a rare class
_FEWEST = 20  # minimum rows to judge predictions
_MODEL = Remedy("change the model (likelihood, prior or network)")


def verdict(found: dict[str, Any], held_out: bool, converges: bool, more: Iterable[Remedy] = ()) -> Message | None:
    """Return the verdict on a run by its summary; None without metrics of a network. ``more`` gets more draws."""
    metrics = found.get("metrics")
    if metrics is None:
        return None
    averaged, count, classes = metrics["averaged"], metrics["rows"], bool(metrics["class_names"])
    weights, predictions = found.get("rhat_max"), found.get("rhat_function_max")
    mixed = not converges or predictions is None or predictions <= MIXED
    values = {"rows": count, "held_out": held_out, "rhat": weights, "rhat_functions": predictions}
    if not classes and "coverage_90" not in averaged:
        findings = ["the likelihood does not define predictive intervals", *_of_chains(predictions, converges)]
        return _message("not_judged", findings, () if mixed else more, **values)
    rows = f"{count:,} {'held-out' if held_out else 'training'} {'row' if count == 1 else 'rows'}"
    if classes:
        accuracy, expected = averaged["accuracy"], metrics["confidence"]
        level = _off(accuracy, expected, count)
        finding = f"{accuracy:.0%} of {rows} are classified correctly ({expected:.0%} expected)"
        for rare in metrics.get("rare_classes", ()):
            level = max(level, int(rare["recall"] < _FOUND))
            # By chance the average precision is the share of the rows.
            precision = rare["average_precision"]
            ranked = "" if precision is None else f" (average precision {precision:.2f})"
            finding += (
                f"; of {rare['rows']} rows of the rare class {rare['name']} {rare['recall']:.0%} are found{ranked}"
            )
    else:
        level, shown = 0, []
        for nominal in (50, 90):
            share = averaged[f"coverage_{nominal}"]
            # Intervals of counts cover more, because their ends are whole numbers.
            expected = averaged.get(f"coverage_{nominal}_expected", nominal / 100)
            off = _off(share, expected, count)
            level = max(level, off)
            remarks = [f"{expected:.0%} expected"] if expected != nominal / 100 else []
            remarks += [f"too {'wide' if share > expected else 'narrow'}"] if off else []
            shown.append(f"{share:.0%}" + (f" ({', '.join(remarks)})" if remarks else ""))
        finding = f"50% intervals cover {shown[0]} and 90% intervals {shown[1]} of {rows}"
    findings = [finding]
    if relative := found.get("relative_score"):
        model, ratio, error = (relative[name] for name in ("model", "ratio", "se"))
        values |= {"ratio": ratio, "ratio_se": error}
        worse = sum(ratio > limit + error for limit in _RATIOS)
        level = max(level, worse)
        score, off = "log loss" if classes else "error (CRPS)", abs(ratio - 1)
        side = f"is {off:.0%} ± {error:.0%} {'smaller' if ratio < 1 else 'larger'} than"
        side = side if off >= 0.005 else f"equals (± {error:.0%})"
        advice = ", which predicts better" if worse else ""
        findings.insert(0, f"the {score} {side} that of the best simple model ({model}){advice}")
    if not held_out or count < _FEWEST:
        level = max(level, 1)
        findings += [f"{count} {'row is' if count == 1 else 'rows are'} too few to judge"] if count < _FEWEST else []
    bad = level >= LEVELS.index("not_usable_yet")
    ways = more if bad or not mixed or (level and not converges) else ()
    if bad and not converges:
        ways = [*more, _MODEL]
    elif bad and mixed and predictions is not None:
        ways = [_MODEL]
    return _message(LEVELS[level], [*findings, *_of_chains(predictions, converges)], ways, **values)


def _off(share: float, expected: float, rows: int) -> int:
    """Return 0 for a share within tolerance, 1 if it is off, 2 if it is far off."""
    error = _ERRORS * math.sqrt(expected * (1 - expected) / rows)
    return sum(abs(share - expected) > limit + error for limit in (_OFF, _FAR_OFF))


def _message(code: str, findings: list[str], more: Iterable[Remedy], **values: Any) -> Message:
    return Message(code, *more, findings="; ".join(findings) + ".", **values)


def _of_chains(predictions: float | None, converges: bool) -> Iterator[str]:
    """Return whether the chains, which are repeated fits, agree, if known."""
    if not converges:
        yield "its uncertainty is approximate"
    elif predictions is not None and predictions > MIXED:
        yield "repeated fits, made in parallel, still disagree, so more time may help"
    elif predictions is not None:
        yield "repeated fits, made in parallel, agree"
