"""Format a run's prediction for a row: a number with intervals, or classes with probabilities."""

from __future__ import annotations

import html
import math
from typing import Any

_FAR = (
    "Far from the training data: no training row is as near as training rows are to each other, so that the prior"
    " dominates the data."
)


def answer_html(part: dict[str, Any], target: str, span: tuple[float, float]) -> str:
    """Return the part ``row`` of a frame as HTML."""
    statement = _of_classes(part, target) if part["probabilities"] is not None else _of_numbers(part, target, span)
    far = f"<p class='far'>{_FAR}</p>" if part["far"] else "<p>Near the training data.</p>"
    note = f"<p class='quiet'>{html.escape(part['note'])}</p>" if part["note"] else ""
    return f"{statement}{far}{note}<p class='quiet'>By {part['draws']:,} draws of the weights.</p>"


def _of_numbers(part: dict[str, Any], target: str, span: tuple[float, float]) -> str:
    sd = part["epistemic_sd"] if part["sd"] is None else part["sd"]
    levels = {level: _text(value, sd) for level, value in part["quantiles"].items()}
    rows = [
        ("median", levels[0.5]),
        ("90% interval: lower to upper", f"{levels[0.05]} to {levels[0.95]}"),
        ("50% interval", f"{levels[0.25]} to {levels[0.75]}"),
        ("mean", _text(part["mean"], sd)),
        ("sd", _text(sd, sd)),
        ("epistemic sd: the draws differ, more data would help", _text(part["epistemic_sd"], sd)),
    ]
    if part["sd"] is not None:
        rows.append(("aleatoric sd: noise, which stays", _text(part["aleatoric_sd"], sd)))
    heading = f"{html.escape(target)}: {levels[0.5]} ({levels[0.05]} to {levels[0.95]})"
    return f"<h3>{heading}</h3>{_bar(part['quantiles'], span)}{_table(rows)}"


def _bar(quantiles: dict[float, float], span: tuple[float, float]) -> str:
    """Draw the intervals in the range of the target, which grows where they reach beyond it."""
    low, high = min(span[0], quantiles[0.05]), max(span[1], quantiles[0.95])
    wide = max(high - low, 1e-300)

    def place(level: float) -> float:
        return 100 * (quantiles[level] - low) / wide

    def interval(name: str, first: float, last: float) -> str:
        return f"<i class='{name}' style='left:{place(first):.2f}%;width:{place(last) - place(first):.2f}%'></i>"

    middle = f"<b style='left:{place(0.5):.2f}%'></b>"
    words = f"50% and 90% interval between {low:.4g} and {high:.4g}"
    inside = f"{interval('most', 0.05, 0.95)}{interval('half', 0.25, 0.75)}{middle}"
    return f"<div class='line' role='img' aria-label='{words}' title='{words}'>{inside}</div>"


def _of_classes(part: dict[str, Any], target: str) -> str:
    found = sorted(zip(part["probabilities"], part["classes"], strict=True), key=lambda pair: -pair[0])
    lines = "".join(
        f"<tr><th scope='row'>{html.escape(str(name))}</th><td>{share:.3f}</td>"
        f"<td class='bar'><i style='width:{100 * share:.1f}%'></i></td></tr>"
        for share, name in found
    )
    heading = f"{html.escape(target)}: {html.escape(str(found[0][1]))}, probability {found[0][0]:.2f}"
    entropy, mutual = part["entropy"], part["mutual_information"]
    parts = [
        ("entropy", f"{entropy:.3f} nats"),
        ("epistemic: the draws differ, more data would help", f"{mutual:.3f} nats"),
        ("aleatoric: classes overlap, which stays", f"{max(entropy - mutual, 0.0):.3f} nats"),
    ]
    return f"<h3>{heading}</h3><table>{lines}</table>{_table(parts)}"


def _table(rows: list[tuple[str, str]]) -> str:
    lines = "".join(f"<tr><th scope='row'>{name}</th><td>{text}</td></tr>" for name, text in rows)
    return f"<table>{lines}</table>"


def _text(value: float, sd: float) -> str:
    """Write a number as exactly as its sd makes sense."""
    if not math.isfinite(value):
        return "–"
    if not sd > 0 or not 1e-4 < abs(sd) < 1e6:
        return f"{value:.4g}"
    return f"{value:,.{max(0, 1 - math.floor(math.log10(sd)))}f}"
