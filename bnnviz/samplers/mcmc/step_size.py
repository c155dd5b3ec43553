r"""Find the size of a leapfrog step: by doubling and halving at first, then by dual averaging.

Dual averaging finds the size h at which the mean acceptance is the wanted one: after n updates with the mean shortfall
$\bar H_n$,

$$\log h_{n+1} = \mu - \frac{\sqrt n}{\gamma} \bar H_n, \qquad
  \log \bar h_{n+1} = n^{-\kappa} \log h_{n+1} + (1 - n^{-\kappa}) \log \bar h_n,$$

with $\gamma = 0.05$, $t_0 = 10$, $\kappa = 0.75$, $\mu = \log 10 h_1$. Reference: M. D. Hoffman and A. Gelman, The
No-U-Turn Sampler, JMLR 15 (2014), 1593-1623, section 3.2 and algorithm 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

_SHRINKAGE, _OFFSET, _FORGETTING = 0.05, 10.0, 0.75  # gamma, t_0 and kappa
_SETTLED = 10  # updates from which on the mean of the sizes tried is one to sample with
_SEARCHED = 0.8  # acceptance of one step that the search looks for
_LEAST, _MOST = 1e-20, 1e7


class DualAveraging(NamedTuple):
    """Find the logarithm of a step size such that the acceptance is the wanted one (Hoffman and Gelman 2014, 5).

    Attributes
    ----------
    centre : float
        mu, which the logarithm is drawn to.
    updates : int
        n.
    shortfall : float
        By how much the acceptance fell short, on average.
    log_mean : float
        Mean of the logarithms, the later ones counting more.
    """

    centre: float
    updates: int
    shortfall: float
    log_mean: float

    @classmethod
    def begun(cls, size: float) -> DualAveraging:
        """Return it before the first update, at a step size."""
        return cls(math.log(10 * size), 0, 0.0, math.log(size))

    def updated(self, shortfall: float) -> tuple[DualAveraging, float]:
        """Return it after moves of which the acceptance fell short by so much on average, and the size to try next."""
        updates = self.updates + 1
        mean = self.shortfall + (shortfall - self.shortfall) / (updates + _OFFSET)
        log_size = self.centre - updates**0.5 / _SHRINKAGE * mean
        log_mean = self.log_mean + updates**-_FORGETTING * (log_size - self.log_mean)
        return DualAveraging(self.centre, updates, mean, log_mean), math.exp(log_size)

    @property
    def size(self) -> float:
        """Mean of the sizes tried; of fewer than ten, which begin at ten times the first size, that size at most."""
        size = math.exp(self.log_mean)
        return size if self.updates >= _SETTLED else min(size, math.exp(self.centre) / 10)


def reasonable(acceptance: Callable[[float], float], size: float) -> float:
    """Return the step size at which the acceptance of one step crosses 0.8, to a factor of two.

    Parameters
    ----------
    acceptance : callable
        From a step size to the mean acceptance probability, 0 to 1.
    size : float
        To begin with.
    """
    grows = acceptance(size) > _SEARCHED
    while _LEAST < size < _MOST:
        size = 2 * size if grows else 0.5 * size
        if (acceptance(size) > _SEARCHED) != grows:
            break
    return size
