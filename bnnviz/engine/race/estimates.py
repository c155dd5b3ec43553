"""Estimate means and standard deviations over a run's draws, and measure how far they are from the truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.evaluation.draw_table import DrawTable
from bnnviz.engine.evaluation.predictions import Predictor
from bnnviz.engine.protocol import DrawSource
from bnnviz.targets import BNN, Target

# Draws of all chains whose functions are evaluated, and inputs that they are evaluated at.
_DRAWS, _INPUTS = 4000, 100
_RESAMPLED = 1000  # draws taken of weighted ones
_LEAST_PROBABILITY_SD = 0.01  # of a probability: smaller ones are not told apart


class TrueMoments(NamedTuple):
    """Hold means and standard deviations that estimates are compared with, each (quantities,).

    Attributes
    ----------
    mean, sd : ndarray
    scale : ndarray
        What errors are measured in: the standard deviation.
    """

    mean: np.ndarray
    sd: np.ndarray
    scale: np.ndarray


class EstimateError(NamedTuple):
    """Hold how far estimates are from the truth, in its standard deviations.

    Attributes
    ----------
    mean, sd : float
        Root mean square over quantities of (mean - true mean) / true sd, and of sd / true sd - 1.
    """

    mean: float
    sd: float

    @property
    def both(self) -> float:
        """The root of half the sum of their squares."""
        return float(np.sqrt((self.mean**2 + self.sd**2) / 2))


def known_truth(target: Target) -> TrueMoments | None:
    """Return the truth where the target knows its moments, else None."""
    if target.mean() is None:
        return None
    sd = np.sqrt(np.diag(target.cov()))
    return TrueMoments(target.mean(), sd, sd)


def error(mean: np.ndarray, sd: np.ndarray, truth: TrueMoments) -> EstimateError:
    """Return how far means and standard deviations (quantities,) are from the truth."""
    with np.errstate(over="ignore", invalid="ignore"):
        return EstimateError(
            float(np.sqrt(np.mean(((mean - truth.mean) / truth.scale) ** 2))),
            float(np.sqrt(np.mean(((sd - truth.sd) / truth.scale) ** 2))),
        )


class Estimates:
    """Take the quantities of a run's draws: its coordinates, or of a network the function at up to 100 inputs.

    Single weights of a network are no quantities to compare: hidden units can change places.

    Parameters
    ----------
    run : DrawSource
    """

    def __init__(self, run: DrawSource) -> None:
        self._run = run
        self._predictor = Predictor(run.target) if isinstance(run.target, BNN) else None
        self._table = DrawTable(run, lambda theta: self._predictor.functions(theta, _INPUTS))

    @property
    def what(self) -> str:
        """What the quantities are."""
        if self._predictor is None:
            return "coordinates"
        return "predicted probabilities" if self._of_probabilities else "predicted values"

    @property
    def _of_probabilities(self) -> bool:
        return self._predictor is not None and self._predictor.kind in ("area", "classes")

    def values(self) -> np.ndarray:
        """Return the quantities (chains, draws, quantities) of the draws; of a network those of up to 4,000 draws."""
        run = self._run
        if self._predictor is None:
            return run.store.view(run.alive).double().cpu().numpy()
        return self._table.values(_DRAWS)

    def moments(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return mean and standard deviation (quantities,) over the draws so far; None of fewer than two."""
        if self._run.sampler.weighted:
            return self._weighted()
        values = self.values()
        if values.shape[1] < 2:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return values.mean((0, 1)), values.std((0, 1))

    def _weighted(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the moments of draws that came with weights."""
        run = self._run
        if not np.isfinite(run.log_weights).any():
            return None
        if self._predictor is None:
            found = diagnostics.weighted_moments(run.draws, run.log_weights)
            return found.mean, np.sqrt(np.diag(found.cov))
        values = self._predictor.functions(run.resampled(_RESAMPLED), _INPUTS)
        return values.mean(0), values.std(0)

    def truth(self, mean: np.ndarray, sd: np.ndarray) -> TrueMoments:
        """Return means and standard deviations (quantities,) as a truth; a certain probability keeps a scale."""
        return TrueMoments(mean, sd, np.maximum(sd, _LEAST_PROBABILITY_SD) if self._of_probabilities else sd)
