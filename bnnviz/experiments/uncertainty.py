"""Measure predictive uncertainty: entropies out of distribution, reliability, attacks, hardest images, traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bnnviz.experiments.experiment import Panel
from bnnviz.experiments.predictive import PredictiveExperiment

#: Views that combine all cases in one part.
_TOGETHER = {
    "entropy": "Predictive entropy",
    "entropy_bars": "Predictive entropy",
    "reliability": "Reliability",
    "attack": "Accuracy under attack",
    "attack_entropy": "Entropy under attack",
}
_HARDEST = 3  # number of images with plotted probabilities


@dataclass(frozen=True)
class UncertaintyExperiment(PredictiveExperiment):
    """A figure of samplers on images, with results of the averaged prediction, over runs with different seeds."""

    runner: str = "uncertainty_run:result"
    ood: str = "notmnist"
    base: float | None = None

    @property
    def _measured(self) -> list[str]:
        # Everything is measured at once: another experiment with the same runs finds it.
        return [self.runner, self.ood, str(self.base)]

    def _panels_of(self, picture: str, firsts: list[tuple[str, dict[str, Any]]]) -> list[Panel]:
        if picture not in (*_TOGETHER, "digit"):
            return super()._panels_of(picture, firsts)
        parts = [(name, pictures[picture]) for name, pictures in firsts if pictures.get(picture) is not None]
        if not parts:
            return []
        if picture == "digit":
            return _hardest(parts)
        entries = [part["entry"] | {"name": name} for name, part in parts]
        view = picture.removesuffix("_bars")
        return [(_TOGETHER[picture], view, parts[0][1]["scene"] | {"entries": entries})]


def _hardest(parts: list[tuple[str, dict[str, Any]]]) -> list[Panel]:
    """Return all cases' probabilities for the images with the largest mean uncertainty."""
    entropy = np.mean([part["entropy"] for _, part in parts], axis=0)
    first = parts[0][1]
    found = []
    for row in np.argsort(-entropy)[:_HARDEST].tolist():
        observed = int(first["observed"][row])
        entries = [{"name": name} | {key: part[key][row] for key in ("mean", "low", "high")} for name, part in parts]
        heading = f"Test image {row}, a {first['classes'][observed]}"
        found.append((heading, "digit", {"classes": first["classes"], "observed": observed, "entries": entries}))
    return found
