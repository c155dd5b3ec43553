r"""Learn the length of HMC trajectories from many chains at once: ChEES.

The trajectory length T maximises the criterion

$$\tfrac14\, E\big[(\lVert x' - E x' \rVert^2 - \lVert x - E x \rVert^2)^2\big],$$

the change of the distance from the centre between the start x and the end x' of a trajectory. With the velocity v' at
the end, the derivative with respect to log T for a trajectory of time t is, up to a constant,

$$t\, (\lVert x' - E x' \rVert^2 - \lVert x - E x \rVert^2)\, (x' - E x') \cdot v',$$

with means over chains. log T follows the mean over accepted ends by Adam without momentum. All chains take equally many
steps, so no chain waits for another one's longer tree as in NUTS. Reference: M. D. Hoffman, A. Radul and P. Sountsov,
An adaptive-MCMC scheme for setting trajectory lengths in Hamiltonian Monte Carlo, AISTATS, PMLR 130 (2021), 3907-3915,
section 3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

#: Maximum number of leapfrog steps of a trajectory with a learned length.
MOST_STEPS = 1000
_FIRST_STEPS = 10  # if the scales are unknown
_LEARNT = math.pi / 2  # for a standard normal: a quarter of the period
_ROUNDING = 1e-9  # of a number of steps
_RATE, _FORGETTING, _AVERAGING = 0.05, 0.95, 0.5


class TrajectoryLength(NamedTuple):
    """The trajectory length, in units of the metric, and the state of Adam."""

    log_length: float
    square: float  # Exponentially weighted mean of the squared derivatives
    updates: int
    log_mean: float  # Exponentially weighted mean of the logarithms

    @classmethod
    def begun(cls, length: float) -> TrajectoryLength:
        """Return the state before the first update."""
        return cls(math.log(length), 0.0, 0, math.log(length))

    @classmethod
    def first(cls, step_size: float, learned: bool) -> TrajectoryLength:
        """Return the initial state of a warm-up window; the length depends on whether the metric is learned."""
        return cls.begun(max(_LEARNT, step_size) if learned else _FIRST_STEPS * step_size)

    def updated(self, derivative: float, step_size: float) -> TrajectoryLength:
        """Return the state after moves with this derivative with respect to log T, within the limits."""
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
        """Return the mean of the tried lengths."""
        return self._replace(log_length=self.log_mean)

    def steps(self, step_size: float, share: float) -> int:
        """Return the number of leapfrog steps in a share of the length."""
        steps = share * math.exp(self.log_length) / step_size
        return min(max(math.ceil(steps - _ROUNDING), 1), MOST_STEPS)


def derivative(before: Tensor, after: Tensor, velocity: Tensor, counted: Tensor) -> float:
    """Return the mean derivative of the criterion with respect to T, for trajectories of time one.

    Parameters
    ----------
    before, after, velocity : Tensor, shape (chains, dim)
        Starts and ends of trajectories, and velocities at the ends, in units of the scales.
    counted : Tensor, bool, shape (chains,)
        Accepted ends.
    """
    count = counted.sum().clamp_min(1)
    begun = before - before.mean(0)
    ended = after - torch.where(counted[:, None], after, 0.0).sum(0) / count
    further = ended.square().sum(1) - begun.square().sum(1)
    each = further * (ended * velocity).sum(1)
    return float(torch.where(counted, each, 0.0).sum() / count)
