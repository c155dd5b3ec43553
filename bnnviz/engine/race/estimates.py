"""Estimate means and standard deviations over a run's draws, and measure their errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics
from bnnviz.engine.evaluation.predictions import DrawTable, Predictor
from bnnviz.engine.protocol import AnyRun
from bnnviz.targets import BNN, Target

# Maximum draws of all chains to evaluate functions, and the number of their inputs.
_DRAWS, _INPUTS = 4000, 100
_RESAMPLED = 1000  # resampled draws of weighted ones
_LEAST_PROBABILITY_SD = 0.01  # resolution of probabilities
_WIDTH = 2.0  # half width of an interval, in standard errors
# Groups of chains that are left out one after another for a standard error: their minimum and maximum number, and the
# maximum memory of their estimates.
_FEWEST_GROUPS, _MOST_GROUPS, _NUMBERS = 4, 16, 20_000


class TrueMoments(NamedTuple):
    """Means and standard deviations to compare estimates with, each (quantities,)."""

    mean: np.ndarray
    sd: np.ndarray
    scale: np.ndarray


class MomentEstimates(NamedTuple):
    """Means and standard deviations (quantities,), and both without each group of chains (groups, 2, quantities)."""

    mean: np.ndarray
    sd: np.ndarray
    without: np.ndarray | None = None


#: The worst R-hat and the smallest ESS of a network's predictions, by the names in a run's summary.
FUNCTION_FIGURES = ("rhat_function_max", "ess_function_min")


class EstimateError(NamedTuple):
    """Errors of estimates, in standard deviations of the truth."""

    mean: float
    sd: float
    log_se: float = float("nan")

    @property
    def both(self) -> float:
        """Root mean square of both errors."""
        return float(np.sqrt((self.mean**2 + self.sd**2) / 2))

    @property
    def interval(self) -> tuple[float, float]:
        """Two standard errors below and above `both`; nan if unknown."""
        factor = float(np.exp(_WIDTH * self.log_se))
        return self.both / factor, self.both * factor


def known_truth(target: Target) -> TrueMoments | None:
    """Return the truth if the target knows its moments, otherwise None."""
    if target.mean() is None:
        return None
    sd = np.sqrt(np.diag(target.cov()))
    return TrueMoments(target.mean(), sd, sd)


def error(found: MomentEstimates, truth: TrueMoments) -> EstimateError:
    """Return the errors of estimates."""
    with np.errstate(all="ignore"):
        mean, sd = _distances(found.mean, found.sd, truth)
        if found.without is None:
            return EstimateError(float(mean), float(sd))
        parts = _distances(found.without[:, 0], found.without[:, 1], truth)
        each, groups = np.log(np.square(parts).sum(0)) / 2, len(found.without)
        log_se = float(np.sqrt((groups - 1) / groups * np.square(each - each.mean()).sum()))
    return EstimateError(float(mean), float(sd), log_se)


def _distances(mean: np.ndarray, sd: np.ndarray, truth: TrueMoments) -> np.ndarray:
    """Return the root mean squares (2, ...) over quantities of the errors of means and sds (..., quantities)."""
    off = np.stack([(mean - truth.mean) / truth.scale, (sd - truth.sd) / truth.scale])
    return np.sqrt(np.mean(np.square(off), axis=-1))


def moments_of(values: np.ndarray) -> MomentEstimates:
    """Return the moments of draws (chains, draws, quantities), and those without each group of chains."""
    chains, _, quantities = values.shape
    groups = min(chains, _MOST_GROUPS, max(_FEWEST_GROUPS, _NUMBERS // max(quantities, 1)))
    with np.errstate(over="ignore", invalid="ignore"):
        mean, sd = values.mean((0, 1)), values.std((0, 1))
        if groups < _FEWEST_GROUPS:
            return MomentEstimates(mean, sd)
        shifted = values - mean  # otherwise squares of large means would hide small variances
        first, second = shifted.mean(1), np.square(shifted).mean(1)
        parts = np.array_split(np.arange(chains), groups)
        kept = [np.setdiff1d(np.arange(chains), part) for part in parts]
        means = np.stack([first[rows].mean(0) for rows in kept])
        sds = np.sqrt(np.maximum(np.stack([second[rows].mean(0) for rows in kept]) - means**2, 0.0))
    return MomentEstimates(mean, sd, np.stack([mean + means, sds], axis=1))


def worst_mixing(values: np.ndarray) -> tuple[float, float]:
    """Return the largest R-hat and the smallest ESS of the columns of (chains, draws, columns); nan if unknown."""
    ess = diagnostics.ess_each(values)
    rhat = np.array([diagnostics.rhat(values[..., i]) for i in range(values.shape[2])])
    if not (np.isfinite(rhat).any() and np.isfinite(ess).any()):
        return np.nan, np.nan
    return float(np.nanmax(rhat)), float(np.nanmin(ess))


def saved_arrays(arrays: Iterable[np.ndarray | None]) -> list[Tensor | None]:
    """Return arrays as tensors, which a checkpoint may contain."""
    return [None if array is None else torch.as_tensor(array) for array in arrays]


def loaded_arrays(tensors: Iterable[Tensor | None]) -> list[np.ndarray | None]:
    """Return tensors of a checkpoint as arrays."""
    return [None if tensor is None else tensor.numpy() for tensor in tensors]


class Estimates:
    """Compute the coordinates of a run's draws, or for a network, whose units can change places, its function."""

    def __init__(self, run: AnyRun) -> None:
        self._run = run
        self._predictor = Predictor(run.target) if isinstance(run.target, BNN) else None
        self._table = DrawTable(run, lambda theta: self._predictor.functions(theta, _INPUTS))

    @property
    def what(self) -> str:
        """Description of the quantities."""
        if self._predictor is None:
            return "coordinates"
        return "predicted probabilities" if self._of_probabilities else "predicted values"

    @property
    def _of_probabilities(self) -> bool:
        return self._predictor is not None and self._predictor.kind in ("area", "classes")

    def values(self) -> np.ndarray:
        """Return the quantities (chains, draws, quantities); for a network those of up to 4,000 draws."""
        run = self._run
        if self._predictor is None:
            return run.store.view(run.alive).double().cpu().numpy()
        return self._table.values(_DRAWS)

    def moments(self) -> MomentEstimates | None:
        """Return mean and standard deviation (quantities,) over the draws so far; None for fewer than two."""
        if self._run.sampler.traits.weighted:
            return self._weighted()
        values = self.values()
        return None if values.shape[1] < 2 else moments_of(values)

    def _weighted(self) -> MomentEstimates | None:
        """Return the moments of weighted draws."""
        run = self._run
        if not np.isfinite(run.log_weights).any():
            return None
        if self._predictor is None:
            found = diagnostics.weighted_moments(run.draws, run.log_weights)
            return MomentEstimates(found.mean, np.sqrt(np.diag(found.cov)))
        values = self._predictor.functions(run.resampled(_RESAMPLED), _INPUTS)
        return MomentEstimates(values.mean(0), values.std(0))

    def truth(self, mean: np.ndarray, sd: np.ndarray) -> TrueMoments:
        """Return means and standard deviations (quantities,) as a truth; a degenerate probability keeps a scale."""
        return TrueMoments(mean, sd, np.maximum(sd, _LEAST_PROBABILITY_SD) if self._of_probabilities else sd)
