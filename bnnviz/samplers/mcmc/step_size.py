r"""Find the leapfrog step size: first by doubling and halving, then by dual averaging and a fitted curve.

Dual averaging tries sizes h near the one with the target mean acceptance. After n updates with mean shortfall
$\bar H_n$,

$$\log h_{n+1} = \mu - \frac{\sqrt n}{\gamma} \bar H_n, \qquad
  \log \bar h_{n+1} = n^{-\kappa} \log h_{n+1} + (1 - n^{-\kappa}) \log \bar h_n,$$

with $\gamma = 0.05$, $t_0 = 10$, $\kappa = 0.75$, $\mu = \log 10 h_1$. Reference: M. D. Hoffman and A. Gelman, The
No-U-Turn Sampler, JMLR 15 (2014), 1593-1623, section 3.2 and algorithm 4.

The tried sizes spread by half of their mean or more, and the acceptance is concave in them: at their mean it is higher
than on average, and trajectories would be shorter than intended. Sampling therefore uses the size at which a curve
through all tried sizes crosses the target acceptance a,

$$a(h) = \exp(-e^{\alpha} (h / h_0)^{\beta}), \qquad \log(-\log a) = \alpha + \beta \log (h / h_0).$$

For small leapfrog steps the shortfall of the acceptance is proportional to h^2 (A. Beskos and others, Optimal tuning of
the hybrid Monte Carlo algorithm, Bernoulli 19 (2013), doi:10.3150/12-BEJ414), so $\beta$ is about 2. Both parameters
are fitted by Fisher scoring, one step per update, with each acceptance treated as one draw; older updates are
discounted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

_SHRINKAGE, _OFFSET, _FORGETTING = 0.05, 10.0, 0.75  # gamma, t_0 and kappa
_SETTLED = 10  # updates after which the mean of the tried sizes is reliable
_SEARCHED = 0.8  # target acceptance of one step in the search
_LEAST, _MOST = 1e-20, 1e7
_SLOPE = 2.0  # prior mean of the curve's slope
_LEAST_SLOPE = 0.5
_KNOWN = 0.5, 1.0  # prior precisions of height and slope
_KEPT = 0.98  # discount of earlier information per update
_LEAST_HEIGHT, _MOST_HEIGHT = -30.0, 3.0  # range in which an acceptance is neither one nor zero
_APART = math.log(2.0)  # maximum distance from the mean of the tried sizes


class AcceptanceCurve(NamedTuple):
    """A curve fitted to acceptances as a function of the logarithm of the step size."""

    centre: float  # Logarithm of the step size where the height applies
    # Of log(-log a) there, and with respect to the logarithm of the step size
    height: float
    slope: float
    precision: tuple[float, float, float]  # Height, both, slope

    @classmethod
    def begun(cls, size: float) -> AcceptanceCurve:
        """Return the prior curve at the step size found by the search."""
        return cls(math.log(size), _height(_SEARCHED), _SLOPE, (_KNOWN[0], 0.0, _KNOWN[1]))

    def updated(self, log_size: float, acceptance: float) -> AcceptanceCurve:
        """Return the curve after moves with a step size and their acceptance."""
        above = log_size - self.centre
        lost = math.exp(min(max(self.height + self.slope * above, _LEAST_HEIGHT), _MOST_HEIGHT))
        rejected = -math.expm1(-lost)
        information, error = lost**2 * (1 - rejected) / rejected, (1 - acceptance - rejected) * lost / rejected
        first, both, second = (_KEPT * part for part in self.precision)
        first, both, second = (
            first + information,
            both + information * above,
            second + information * above**2 + (1 - _KEPT) * _KNOWN[1],
        )
        determinant = first * second - both**2
        height = self.height + error * (second - both * above) / determinant
        slope = self.slope + error * (first * above - both) / determinant
        return AcceptanceCurve(self.centre, height, max(slope, _LEAST_SLOPE), (first, both, second))

    def log_size(self, target_accept: float) -> float:
        """Return the logarithm of the step size at which the curve crosses an acceptance."""
        return self.centre + (_height(target_accept) - self.height) / self.slope


class DualAveraging(NamedTuple):
    """Find the logarithm of the step size with the target acceptance (Hoffman and Gelman 2014, 5)."""

    centre: float  # mu, towards which the logarithm is shrunk
    updates: int  # n
    shortfall: float  # Mean shortfall of the acceptance
    log_mean: float  # Weighted mean of the logarithms, with more weight on later ones
    curve: AcceptanceCurve  # Through all tried sizes

    @classmethod
    def begun(cls, size: float) -> DualAveraging:
        """Return the state before the first update, at a step size."""
        return cls(math.log(10 * size), 0, 0.0, math.log(size), AcceptanceCurve.begun(size))

    def updated(self, tried: float, acceptance: float, target_accept: float) -> tuple[DualAveraging, float]:
        """Return the state after moves, and the size to try next."""
        updates = self.updates + 1
        mean = self.shortfall + (target_accept - acceptance - self.shortfall) / (updates + _OFFSET)
        log_size = self.centre - updates**0.5 / _SHRINKAGE * mean
        log_mean = self.log_mean + updates**-_FORGETTING * (log_size - self.log_mean)
        curve = self.curve.updated(tried, acceptance)
        return DualAveraging(self.centre, updates, mean, log_mean, curve), math.exp(log_size)

    def size(self, target_accept: float) -> float:
        """Return the size with the target acceptance, within a factor of two of the mean of the tried sizes.

        Before ten updates, which start at ten times the initial size, return that mean, at most the initial size.
        """
        if self.updates < _SETTLED:
            return min(math.exp(self.log_mean), math.exp(self.centre) / 10)
        apart = self.curve.log_size(target_accept) - self.log_mean
        return math.exp(self.log_mean + min(max(apart, -_APART), _APART))


def _height(acceptance: float) -> float:
    return math.log(-math.log(acceptance))


def reasonable(acceptance: Callable[[float], float], size: float) -> float:
    """Return the step size, up to a factor of two, at which the acceptance of one step crosses 0.8."""
    grows = acceptance(size) > _SEARCHED
    while _LEAST < size < _MOST:
        size = 2 * size if grows else 0.5 * size
        if (acceptance(size) > _SEARCHED) != grows:
            break
    return size
