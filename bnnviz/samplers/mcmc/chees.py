r"""Learn how long the trajectories of HMC are from many chains at once: ChEES.

The length T of a trajectory makes the criterion

$$\tfrac14\, E\big[(\lVert x' - E x' \rVert^2 - \lVert x - E x \rVert^2)^2\big]$$

large: how much the distance from the centre changes, from the beginning x of a trajectory to its end x'. With the
velocity v' at the end, the derivative by the logarithm of T of a trajectory of time t is, up to a constant,

$$t\, (\lVert x' - E x' \rVert^2 - \lVert x - E x \rVert^2)\, (x' - E x') \cdot v',$$

the means taken over chains. log T follows the mean over the ends that were accepted, by Adam without momentum. All
chains take equally many steps, so no chain waits for another one's longer tree as in NUTS. Reference: M. D. Hoffman,
A. Radul and P. Sountsov, An adaptive-MCMC scheme for setting trajectory lengths in Hamiltonian Monte Carlo, AISTATS,
PMLR 130 (2021), 3907-3915, section 3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

#: Most leapfrog steps of a trajectory whose length is learned.
MOST_STEPS = 1000
_FIRST_STEPS = 10  # where the scales are not known
_LEARNT = math.pi / 2  # for a standard normal law: a quarter of the period
_ROUNDING = 1e-9  # of a number of steps
_RATE, _FORGETTING, _AVERAGING = 0.05, 0.95, 0.5


class TrajectoryLength(NamedTuple):
    """The length of trajectories, in units of the metric, and what Adam remembers."""

    log_length: float
    square: float  # Mean of the squared derivatives, the later ones counting more
    updates: int
    log_mean: float  # Mean of the logarithms, the later ones counting more

    @classmethod
    def begun(cls, length: float) -> TrajectoryLength:
        """Return it before the first update."""
        return cls(math.log(length), 0.0, 0, math.log(length))

    @classmethod
    def first(cls, step_size: float, learned: bool) -> TrajectoryLength:
        """Return what a window of the warm-up begins with, by whether the metric is learned."""
        return cls.begun(max(_LEARNT, step_size) if learned else _FIRST_STEPS * step_size)

    def updated(self, derivative: float, step_size: float) -> TrajectoryLength:
        """Return it after moves with a derivative of the criterion by log T; between one step and the most."""
        if not math.isfinite(derivative) or derivative == 0.0:
            return self
        updates = self.updates + 1
        square = _FORGETTING * self.square + (1 - _FORGETTING) * derivative**2
        log_length = self.log_length + _RATE * derivative / math.sqrt(square / (1 - _FORGETTING**updates))
        least = math.log(step_size)
        log_length = min(max(log_length, least), least + math.log(MOST_STEPS))
        log_mean = self.log_mean + updates**-_AVERAGING * (log_length - self.log_mean)
        return TrajectoryLength(log_length, square, updates, log_mean)

    def frozen(self) -> TrajectoryLength:
        """Return the mean of the lengths that were tried."""
        return self._replace(log_length=self.log_mean)

    def steps(self, step_size: float, share: float) -> int:
        """Return the leapfrog steps of a share of it."""
        steps = share * math.exp(self.log_length) / step_size
        return min(max(math.ceil(steps - _ROUNDING), 1), MOST_STEPS)


def derivative(before: Tensor, after: Tensor, velocity: Tensor, counted: Tensor) -> float:
    """Return the mean derivative of the criterion by T, for trajectories of time one.

    Parameters
    ----------
    before, after, velocity : Tensor, shape (chains, dim)
        Beginnings and ends of trajectories, and velocities at the ends, in units of the scales.
    counted : Tensor, bool, shape (chains,)
        Ends that were accepted.
    """
    count = counted.sum().clamp_min(1)
    begun = before - before.mean(0)
    ended = after - torch.where(counted[:, None], after, 0.0).sum(0) / count
    further = ended.square().sum(1) - begun.square().sum(1)
    each = further * (ended * velocity).sum(1)
    return float(torch.where(counted, each, 0.0).sum() / count)
