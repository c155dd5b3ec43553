r"""Classify draws by reference moments, with one rule for all samplers.

For every unconstrained coordinate the error of the mean is divided by the posterior's standard deviation, and the error
of the standard deviation is relative. A run is *wrong* if one of these 2 dim errors exceeds both `TOLERANCE` and
chance: the number of standard errors that the largest of them exceeds in one of a thousand tables. It is *too few* with
fewer than `FEWEST` draws per chain, or if it is not wrong but a coordinate has an ESS below `LEAST_ESS`. Otherwise it
is *right*. Standard errors come from the run's batch means, so a constant chain has small ones and is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from benchmarks.posteriors.catalogue import ReferenceMoments
from bnnviz import diagnostics

TOLERANCE = 0.05
LEVEL = 1e-3
FEWEST, LEAST_ESS = 20, 50
_FREEDOM = 63  # of the batches behind a standard error

Verdict = Literal["right", "wrong", "too few"]


@dataclass(frozen=True)
class Judgement:
    """Result of the classification."""

    verdict: Verdict
    bias: float = float("nan")
    se: float = float("nan")
    of: str = ""
    mean_bias: float = float("nan")
    sd_bias: float = float("nan")
    allowed: float = float("nan")
    ess: float = 0.0
    rhat: float = float("nan")
    draws: int = 0


def judge(draws: np.ndarray, truth: ReferenceMoments, coordinates: tuple[str, ...]) -> Judgement:
    """Classify draws (chains, draws, dim)."""
    chains, count, dim = draws.shape
    if not chains or count < FEWEST:
        return Judgement("too few", draws=count)
    draws = draws.astype(float)
    found = diagnostics.moments_with_errors(draws)
    sd = np.sqrt(np.diag(found.cov))
    sd_se = np.divide(np.diag(found.cov_se), 2 * sd, out=np.zeros_like(sd), where=sd > 0)
    errors = np.concatenate([(found.mean - truth.mean) / truth.sd, sd / truth.sd - 1])
    se = np.concatenate([np.hypot(found.mean_se, truth.mean_se), np.hypot(sd_se, truth.sd_se)]) / np.tile(truth.sd, 2)
    allowed = np.maximum(TOLERANCE, chance_limit(2 * dim) * se)
    worst = int(np.argmax(np.abs(errors) / allowed))
    kind, coordinate = ("mean", "sd")[worst // dim], coordinates[worst % dim]
    each = diagnostics.ess_each(draws)
    ess = float(each.min()) if np.isfinite(each).all() else 0.0
    enough: Verdict = "right" if ess >= LEAST_ESS else "too few"
    return Judgement(
        "wrong" if abs(errors[worst]) > allowed[worst] else enough,
        float(errors[worst]),
        float(se[worst]),
        f"{kind} of {coordinate}",
        _largest(errors[:dim]),
        _largest(errors[dim:]),
        float(allowed[worst]),
        ess,
        max(diagnostics.rhat(draws[..., i]) for i in range(dim)),
        count,
    )


def chance_limit(tests: int) -> float:
    """Return the number of standard errors that the largest of ``tests`` errors exceeds in one of a thousand tables."""
    return float(stats.t.isf(LEVEL / (2 * tests), _FREEDOM))


def _largest(errors: np.ndarray) -> float:
    return float(errors[np.argmax(np.abs(errors))])
