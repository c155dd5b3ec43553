"""Parts of frames: those that bnnviz ships, and a few made from arrays."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.experiments import EXPERIMENTS, record
from bnnviz_app import opening_frames
from bnnviz_app.pages.population import PopulationPage
from bnnviz_app.pages.uncertainty import UncertaintyPage
from bnnviz_app.pages.wells import DoubleWellPage

OPENINGS = {page.name: page for page in (DoubleWellPage, PopulationPage, UncertaintyPage)}


@functools.cache
def opening(page: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return scene and frame that a page opens on."""
    return opening_frames.read(page, OPENINGS[page].opening())


@functools.cache
def example_parts() -> dict[str, list[dict]]:
    """Return parts of records of experiments and of the page of images, two of each view at most."""
    found = defaultdict(list)
    for name in EXPERIMENTS:
        for one in record.records(name)[0]:
            for _, view, part in one.panels:
                found[view].append(part)
    for view, part in opening(UncertaintyPage.name)[1].items():
        found[view].append(part)
    return {view: parts[:2] for view, parts in found.items()}


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


def drawn_probabilities(rows: int, sure: float, seed: int, classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Give probabilities (draws, rows, classes) and classes that are drawn from them, or from less sure ones."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(rows, classes)) + 0.7 * rng.normal(size=(30, rows, classes))
    calm, daring = (np.exp(scale * logits) for scale in (1.0, sure))
    shares = (calm / calm.sum(-1, keepdims=True)).mean(0)
    observed = (shares.cumsum(1) < rng.random((rows, 1))).sum(1).clip(max=classes - 1)
    return daring / daring.sum(-1, keepdims=True), observed


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
