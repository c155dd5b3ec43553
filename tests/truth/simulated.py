"""Calibrate by simulation: where true weights lie among a small network's draws given data simulated from them.

Weights are drawn from the prior, and data from the weights, so the true weights are themselves a draw of the posterior.
One path goes on from them and another one back in time, which is a path that sets out with the velocity turned round.
Together they are a stretch of one path in equilibrium, in which the truth has a place that was chosen at random: its
rank is uniform, exactly, however slowly the path mixes (Besag and Clifford 1989; Talts et al. 2018). Each chain has a
data set of its own, so that all go on in lock-step.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn

from bnnviz.samplers import Sampler, warmup
from bnnviz.samplers.random import seeded
from bnnviz.targets.bnn import BNN
from truth.chains import begin, follow, move

PLACES = 16
_UNITS, _ROWS, _NOISE_SD = 3, 8, 0.3
_THINNING = 4  # a broken sampler has to have the time to go astray
_AT = (-0.5, 1.5)  # inputs whose predictions are ranked: between the data, and outside


class Replications(BNN):
    """The posterior of a 1-3-1 network where each chain has observations (chains, rows) of its own."""

    def __init__(self, y: Tensor) -> None:
        x = np.linspace(-1, 1, y.shape[1])
        network = nn.Sequential(nn.Linear(1, _UNITS), nn.Tanh(), nn.Linear(_UNITS, 1))
        super().__init__(network, (x, np.zeros_like(x)), noise_sd=_NOISE_SD)
        self.y = y

    def _in_parts(self, compute, *tensors: Tensor) -> tuple[Tensor, ...]:
        # A part of the chains would meet the data of others.
        return compute(*tensors)


class SimulatedNetwork:
    """Weights from the prior, data from the weights, and the posterior of chains that go on and that go back."""

    quantities = ("prediction_inside", "prediction_outside", "log_likelihood", "log_prior", "weight")

    def __init__(self, replications: int = 512, seed: int = 0) -> None:
        self.replications, self.seed = replications, seed
        rng = torch.Generator().manual_seed(seed)
        prior = Replications(torch.zeros(1, _ROWS)).to("cpu", torch.float64)
        self.theta = torch.randn(replications, prior.dim, generator=rng, dtype=torch.float64)
        clean = prior.outputs(self.theta, prior.x)[..., 0]
        self.y = clean + _NOISE_SD * torch.randn(clean.shape, generator=rng, dtype=torch.float64)
        self.target = Replications(self.y.repeat(2, 1)).to("cpu", torch.float64)

    def ranks(self, sampler: Sampler, patience: float = float("inf")) -> dict[str, np.ndarray]:
        """Return for each quantity the truth's rank (replications,) among the draws, 0 ... PLACES - 1."""
        both = self.theta.repeat(2, 1).numpy()
        mode = np.zeros(self.target.dim) if sampler.needs_mode else None
        rng = seeded(self.seed)
        state = warmup.run(sampler, rng, begin(self.target, sampler, both, rng, mode))
        state = move(sampler, rng, state, both)
        on, _ = state.v.chunk(2)
        state = sampler.resume(rng, state._replace(v=torch.cat([on, -on])))
        course = follow(sampler, rng, state, _THINNING * (PLACES - 1), patience)
        draws = course.draws[:, _THINNING - 1 :: _THINNING]
        return self._ranked(*np.split(draws, 2))

    def _ranked(self, later: np.ndarray, earlier: np.ndarray) -> dict[str, np.ndarray]:
        """Rank the truth in a stretch of PLACES points of which it is one: some draws before it, the others after."""
        rng = np.random.default_rng(self.seed)
        before = rng.integers(PLACES, size=self.replications)
        nearest = np.arange(PLACES - 1)
        chosen = np.concatenate([nearest < before[:, None], nearest < PLACES - 1 - before[:, None]], axis=1)
        draws = np.concatenate([earlier, later], axis=1)[chosen].reshape(self.replications, PLACES - 1, -1)
        truth = self._values(self.theta[:, None])
        values = self._values(torch.as_tensor(draws))
        return {name: (values[name] < truth[name]).sum(1) for name in self.quantities}

    def _values(self, theta: Tensor) -> dict[str, np.ndarray]:
        """Return every quantity (replications, draws) of weights (replications, draws, dim)."""
        flat = theta.flatten(0, 1)
        f = self.target.outputs(flat, self.target.x).view(*theta.shape[:2], -1)
        fit = -(f - self.y[:, None]).square().sum(-1)
        new = self.target.outputs(flat, torch.tensor(_AT, dtype=torch.float64)[:, None]).view(*theta.shape[:2], -1)
        values = (new[..., 0], new[..., 1], fit, -theta.square().sum(-1), theta[..., 0])
        return {name: value.numpy() for name, value in zip(self.quantities, values, strict=True)}


def uniformity(ranks: np.ndarray) -> tuple[float, float]:
    """Return chi-square of ranks against equal counts in all places, and its p-value."""
    found = stats.chisquare(np.bincount(ranks, minlength=PLACES))
    return float(found.statistic), float(found.pvalue)
