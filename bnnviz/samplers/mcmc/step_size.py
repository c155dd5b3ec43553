r"""Find the size of a leapfrog step: by doubling and halving at first, then by dual averaging and a curve through it.

Dual averaging tries sizes h about the one at which the mean acceptance is the wanted one: after n updates with the mean
shortfall $\bar H_n$,

$$\log h_{n+1} = \mu - \frac{\sqrt n}{\gamma} \bar H_n, \qquad
  \log \bar h_{n+1} = n^{-\kappa} \log h_{n+1} + (1 - n^{-\kappa}) \log \bar h_n,$$

with $\gamma = 0.05$, $t_0 = 10$, $\kappa = 0.75$, $\mu = \log 10 h_1$. Reference: M. D. Hoffman and A. Gelman, The
No-U-Turn Sampler, JMLR 15 (2014), 1593-1623, section 3.2 and algorithm 4.

The sizes tried spread by half of their mean or more, and the acceptance is concave in them: at their mean more is
accepted than on average, and trajectories are shorter than they were meant to be. What is sampled with is the size at
which a curve through all that was tried crosses the wanted acceptance a,

$$a(h) = \exp(-e^{\alpha} (h / h_0)^{\beta}), \qquad \log(-\log a) = \alpha + \beta \log (h / h_0).$$

Of small leapfrog steps what is lacking is proportional to h^2 (A. Beskos and others, Optimal tuning of the hybrid
Monte Carlo algorithm, Bernoulli 19 (2013), doi:10.3150/12-BEJ414), so $\beta$ is about 2. Both are found by Fisher
scoring, a step for each update, as if the acceptance were that of one draw; older updates count less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

_SHRINKAGE, _OFFSET, _FORGETTING = 0.05, 10.0, 0.75  # gamma, t_0 and kappa
_SETTLED = 10  # updates from which on the mean of the sizes tried is one to sample with
_SEARCHED = 0.8  # acceptance of one step that the search looks for
_LEAST, _MOST = 1e-20, 1e7
_SLOPE = 2.0  # of the curve, before anything is known
_LEAST_SLOPE = 0.5
_KNOWN = 0.5, 1.0  # precisions of what is known before of height and slope
_KEPT = 0.98  # of what was known before an update
_LEAST_HEIGHT, _MOST_HEIGHT = -30.0, 3.0  # between which an acceptance is neither one nor zero
_APART = math.log(2.0)  # from the mean of the sizes tried, at most


class AcceptanceCurve(NamedTuple):
    """Fit a curve to acceptances over the logarithm of the step size."""

    centre: float  # Logarithm of the step size that it is about
    # Of log(-log a) there, and over the logarithm of the step size
    height: float
    slope: float
    precision: tuple[float, float, float]  # Of the height, of both, of the slope

    @classmethod
    def begun(cls, size: float) -> AcceptanceCurve:
        """Return what is known of it at a step size that was searched for."""
        return cls(math.log(size), _height(_SEARCHED), _SLOPE, (_KNOWN[0], 0.0, _KNOWN[1]))

    def updated(self, log_size: float, acceptance: float) -> AcceptanceCurve:
        """Return it after moves with a step size of which such a share was accepted."""
        above = log_size - self.centre
        lost = math.exp(min(max(self.height + self.slope * above, _LEAST_HEIGHT), _MOST_HEIGHT))
        rejected = -math.expm1(-lost)
        told, error = lost**2 * (1 - rejected) / rejected, (1 - acceptance - rejected) * lost / rejected
        first, both, second = (_KEPT * part for part in self.precision)
        first, both, second = first + told, both + told * above, second + told * above**2 + (1 - _KEPT) * _KNOWN[1]
        determinant = first * second - both**2
        height = self.height + error * (second - both * above) / determinant
        slope = self.slope + error * (first * above - both) / determinant
        return AcceptanceCurve(self.centre, height, max(slope, _LEAST_SLOPE), (first, both, second))

    def log_size(self, wanted: float) -> float:
        """Return the logarithm of the step size at which it crosses an acceptance."""
        return self.centre + (_height(wanted) - self.height) / self.slope


class DualAveraging(NamedTuple):
    """Find the logarithm of a step size such that the acceptance is the wanted one (Hoffman and Gelman 2014, 5)."""

    centre: float  # mu, which the logarithm is drawn to
    updates: int  # n
    shortfall: float  # By how much the acceptance fell short, on average
    log_mean: float  # Mean of the logarithms, the later ones counting more
    curve: AcceptanceCurve  # Through all that was tried

    @classmethod
    def begun(cls, size: float) -> DualAveraging:
        """Return it before the first update, at a step size."""
        return cls(math.log(10 * size), 0, 0.0, math.log(size), AcceptanceCurve.begun(size))

    def updated(self, tried: float, acceptance: float, wanted: float) -> tuple[DualAveraging, float]:
        """Return it after moves, and the size to try next.

        Parameters
        ----------
        tried : float
            Logarithm of their step size, on average.
        acceptance, wanted : float
            What was accepted of them on average, and what is to be.
        """
        updates = self.updates + 1
        mean = self.shortfall + (wanted - acceptance - self.shortfall) / (updates + _OFFSET)
        log_size = self.centre - updates**0.5 / _SHRINKAGE * mean
        log_mean = self.log_mean + updates**-_FORGETTING * (log_size - self.log_mean)
        curve = self.curve.updated(tried, acceptance)
        return DualAveraging(self.centre, updates, mean, log_mean, curve), math.exp(log_size)

    def size(self, wanted: float) -> float:
        """Return the size at which the acceptance is the wanted one, no more than a factor of two from those tried.

        After fewer than ten updates, which begin at ten times the first size, it is their mean, that size at most.
        """
        if self.updates < _SETTLED:
            return min(math.exp(self.log_mean), math.exp(self.centre) / 10)
        apart = self.curve.log_size(wanted) - self.log_mean
        return math.exp(self.log_mean + min(max(apart, -_APART), _APART))


def _height(acceptance: float) -> float:
    return math.log(-math.log(acceptance))


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
