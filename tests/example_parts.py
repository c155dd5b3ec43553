"""Parts of a frame that say how well test rows are predicted, made from example arrays."""

from __future__ import annotations

import functools

import numpy as np

from bnnviz import diagnostics


def roc_curve(name: str, shift: float, spread: float, seed: int = 0) -> dict:
    """Give a method's ROC curve on 71 rows, its draws more or less alike."""
    rng = np.random.default_rng(seed)
    positive = np.arange(71) < 22
    probabilities = rng.normal(size=71) + positive * (shift + spread * rng.normal(size=(100, 1)))
    probabilities = probabilities + spread * rng.normal(size=(100, 71))
    return {"name": name, **diagnostics.roc_envelopes(probabilities, positive)._asdict()}


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


def probability(a: float, b: float, number: int, observed: str) -> dict:
    """Give the probabilities that 100 draws give to one row."""
    probabilities = np.random.default_rng(number).beta(a, b, 100)
    label = f"probability of class 1, row {number}"
    return {"label": label, "observed": observed, **diagnostics.probability_spread(probabilities)._asdict()}


def box(name: str, centre: float, seed: int) -> dict:
    """Give the squared errors of a regression with heavy tails."""
    rng = np.random.default_rng(seed)
    errors = 10**centre * rng.standard_t(4, size=2000) ** 2
    return {"name": name, **diagnostics.error_spread(errors)._asdict()}


def drawn_probabilities(rows: int, sure: float, seed: int, classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Give probabilities (draws, rows, classes) and classes that are drawn from them, or from less sure ones."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(rows, classes)) + 0.7 * rng.normal(size=(30, rows, classes))
    calm, daring = (np.exp(scale * logits) for scale in (1.0, sure))
    shares = (calm / calm.sum(-1, keepdims=True)).mean(0)
    observed = (shares.cumsum(1) < rng.random((rows, 1))).sum(1).clip(max=classes - 1)
    return daring / daring.sum(-1, keepdims=True), observed


def reliability_entry(name: str, sure: float, seed: int) -> dict:
    """Give an entry that is as sure as it is right where ``sure`` is 1, and too sure above."""
    probabilities, observed = drawn_probabilities(1000, sure, seed)
    return {"name": name, **diagnostics.reliability(probabilities.mean(0), observed)._asdict()}


def entropy_entry(name: str, kind: str, seed: int, foreign: bool = True) -> dict:
    """Give an entry of entropies of two kinds of rows."""
    inner, outer = (
        diagnostics.predictive_entropy(drawn_probabilities(rows, sure, seed)[0])
        for rows, sure in ((1000, 2.0 + seed / 3), (700, 0.6 + seed / 10))
    )
    steps = {
        "ecdf": diagnostics.score_ecdf,
        "histogram": lambda values: diagnostics.score_histogram(values, np.log(10), 25),
    }[kind]
    entry = {"name": name, "inside": steps(inner)._asdict(), "outside": None, "auroc": None}
    if foreign:
        area = diagnostics.detection(inner, outer, resamples=2).auroc
        entry |= {"outside": steps(outer)._asdict(), "auroc": area}
    return entry


def attack_entry(name: str, strength: float, rows: int) -> dict:
    """Give an entry whose accuracy falls and whose entropy rises with the step."""
    eps = np.linspace(0, 0.3, 7)
    right = (rows * (0.1 + 0.87 * np.exp(-((eps / strength) ** 2)))).astype(int)
    ends = np.array([diagnostics.share_interval(k, rows) for k in right]).T
    entropy = 0.2 + 1.6 * (1 - np.exp(-eps / strength))
    entry = {"name": name, "eps": eps.tolist(), "accuracy": right / rows, "accuracy_low": ends[0]}
    half = 1.5 / rows**0.5
    entry |= {"accuracy_high": ends[1], "entropy": entropy, "entropy_low": entropy - half}
    return entry | {"entropy_high": entropy + half}


def probability_entry(name: str, seed: int, classes: int) -> dict:
    """Give one row's probabilities with their intervals."""
    probabilities, _ = drawn_probabilities(1, 1.0, seed, classes)
    return {"name": name} | {
        end: values[0] for end, values in diagnostics.class_intervals(probabilities)._asdict().items()
    }


SIX = ("BPS", "σ-BPS", "Boomerang", "SGLD", "SGHMC", "FuncHMC")
METHODS = ("MLE", "MAP", "BBP", "SGLD", "MC dropout", "SAE", "PMCnet")


ANGLES = np.linspace(-180, 180, 13)


def course_entry(name: str, seed: int) -> dict:
    """Give an entry whose figures settle."""
    rng, n = np.random.default_rng(seed), 40
    rise = 1 - np.exp(-np.arange(n) / 8)
    noise = 0.01 * rng.standard_normal((3, n))
    figures = {"accuracy": 0.6 + 0.3 * rise, "nll": 1.4 - rise, "ece": 0.2 - 0.15 * rise}
    each = {key: line + part for (key, line), part in zip(figures.items(), noise, strict=True)}
    return {"name": name, "seconds": np.linspace(1, 30 + seed, n)} | each


def turned_entry(name: str, seed: int) -> dict:
    """Give an entry that is the less sure the further an image is turned."""
    return {"name": name, "entropy": (1 + 0.1 * seed) * (1 - np.cos(np.radians(ANGLES))) / 1.2}


@functools.cache
def example_parts() -> dict[str, list[dict]]:
    """Give parts by the names of the views that show them: plain and crowded ones."""
    lines = [history_line(name, 0.9 - 0.02 * k, 2.0 + k, k) for k, name in enumerate(("full", "light", "diagonal"))]
    many = [roc_curve(name, 2.6 - 0.2 * k, 0.1 * (k > 2), k) for k, name in enumerate(METHODS)]
    digits = [str(k) for k in range(10)]
    rows = {"unit": "nats", "top": float(np.log(10)), "inside": "MNIST", "outside": "notMNIST"}
    steps = {"label": "size of the step (of a pixel's range)", "unit": "nats", "top": float(np.log(10))}
    signs = [f"Speed limit {k}" for k in range(43)]
    entries = [attack_entry(name, 0.07 + 0.03 * k, 1000) for k, name in enumerate(SIX)]
    return {
        "roc": [{"curves": [roc_curve("PMCnet", 2.0, 0.5)]}, {"curves": many}],
        "history": [{"label": "AUC", "lines": lines[:1]}, {"label": "accuracy", "lines": lines}],
        "confusion": [
            matrix(["bad", "good"], [22, 49], 0.92),
            matrix(["1", "2", "3", "5", "6", "7"], [13, 20, 2, 1, 1, 6], 0.7),
            matrix(digits, [1000] * 10, 0.97),
        ],
        "chances": [
            probability(60, 2, 3, "observed good"),
            probability(2, 3, 8, "observed bad"),
            probability(1e6, 1e5, 9, ""),
        ],
        "errors2": [
            {"boxes": [box(name, -k % 3, k) for k, name in enumerate(METHODS)]},
            {"boxes": [box("PMCnet-light", -5.0, 1)]},
        ],
        "reliability": [
            {"entries": [reliability_entry("BPS", 1.4, 0)]},
            {"entries": [reliability_entry(name, 0.7 + 0.3 * k, k) for k, name in enumerate(SIX)]},
        ],
        "entropy": [
            rows | {"kind": "ecdf", "entries": [entropy_entry(name, "ecdf", k) for k, name in enumerate(SIX)]},
            rows
            | {
                "kind": "histogram",
                "entries": [entropy_entry(name, "histogram", 3 * k) for k, name in enumerate(SIX[:2])],
            },
            rows | {"kind": "ecdf", "entries": [entropy_entry("BPS", "ecdf", 1, foreign=False)]},
        ],
        "attack": [steps | {"entries": entries}, steps | {"entries": [attack_entry("BPS", 0.1, 60)]}],
        "attack_entropy": [steps | {"entries": entries}],
        "course": [
            {"entries": [course_entry(name, k) for k, name in enumerate(SIX)]},
            {"entries": [course_entry("BPS", 1)]},
        ],
        "turned": [
            {"angles": ANGLES, "angle": 30.0, "entries": [turned_entry(name, k) for k, name in enumerate(SIX)]},
            {"angles": ANGLES, "angle": 0.0, "entries": [turned_entry("BPS", 1)]},
        ],
        "digit": [
            {
                "classes": digits,
                "observed": 7,
                "entries": [probability_entry(name, k, 10) for k, name in enumerate(SIX[:3])],
            },
            {
                "classes": signs,
                "observed": 40,
                "entries": [probability_entry(name, k, 43) for k, name in enumerate(SIX)],
            },
            {"classes": digits, "observed": None, "entries": [probability_entry("BPS", 4, 10)]},
        ],
    }
