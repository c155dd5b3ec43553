"""Parts of a frame that say how well test rows are predicted, made from example arrays."""

from __future__ import annotations

import numpy as np

from bnnviz import diagnostics


def roc_curve(name: str, shift: float, spread: float, seed: int = 0) -> dict:
    """Give a method's ROC curve on 71 rows, its draws more or less alike."""
    rng = np.random.default_rng(seed)
    positive = np.arange(71) < 22
    chances = rng.normal(size=71) + positive * (shift + spread * rng.normal(size=(100, 1)))
    chances = chances + spread * rng.normal(size=(100, 71))
    return {"name": name, **diagnostics.roc_envelopes(chances, positive)._asdict()}


def history_line(name: str, end: float, pace: float, seed: int) -> dict:
    """Give a figure that settles over 20 iterations."""
    rng, iteration = np.random.default_rng(seed), np.arange(1, 21)
    mean = end - 0.35 * np.exp(-iteration / pace) + 0.006 * rng.normal(size=20)
    return {"name": name, "iteration": iteration, "mean": mean, "sd": 0.06 * np.exp(-iteration / 8)}


def matrix(classes: list[str], rows: list[int], right: float) -> dict:
    """Give a confusion matrix."""
    rng = np.random.default_rng(len(classes))
    shares = np.full((len(classes), len(classes)), (1 - right) / max(len(classes) - 1, 1))
    np.fill_diagonal(shares, right)
    found = np.array([rng.multinomial(n, share) for n, share in zip(rows, shares, strict=True)])
    return {"matrix": found, "classes": classes}


def chance(a: float, b: float, number: int, observed: str) -> dict:
    """Give the chances that 100 draws give to one row."""
    chances = np.random.default_rng(number).beta(a, b, 100)
    label = f"chance of class 1, row {number}"
    return {"label": label, "observed": observed, **diagnostics.chance_spread(chances)._asdict()}


def box(name: str, centre: float, seed: int) -> dict:
    """Give the squared errors of a regression with heavy tails."""
    rng = np.random.default_rng(seed)
    errors = 10**centre * rng.standard_t(4, size=2000) ** 2
    return {"name": name, **diagnostics.error_spread(errors)._asdict()}


METHODS = ("MLE", "MAP", "BBP", "SGLD", "MC dropout", "SAE", "PMCnet")


def example_parts() -> dict[str, list[dict]]:
    """Give parts by the names of the views that show them: plain and crowded ones."""
    lines = [history_line(name, 0.9 - 0.02 * k, 2.0 + k, k) for k, name in enumerate(("full", "light", "diagonal"))]
    many = [roc_curve(name, 2.6 - 0.2 * k, 0.1 * (k > 2), k) for k, name in enumerate(METHODS)]
    digits = [str(k) for k in range(10)]
    return {
        "roc": [{"curves": [roc_curve("PMCnet", 2.0, 0.5)]}, {"curves": many}],
        "history": [{"label": "AUC", "lines": lines[:1]}, {"label": "accuracy", "lines": lines}],
        "confusion": [
            matrix(["bad", "good"], [22, 49], 0.92),
            matrix(["1", "2", "3", "5", "6", "7"], [13, 20, 2, 1, 1, 6], 0.7),
            matrix(digits, [1000] * 10, 0.97),
        ],
        "chances": [chance(60, 2, 3, "observed good"), chance(2, 3, 8, "observed bad"), chance(1e6, 1e5, 9, "")],
        "errors2": [
            {"boxes": [box(name, -k % 3, k) for k, name in enumerate(METHODS)]},
            {"boxes": [box("PMCnet-light", -5.0, 1)]},
        ],
    }
