r"""Sample by stochastic-gradient Hamiltonian Monte Carlo.

$$p \leftarrow (1 - a) p - \epsilon \nabla U(x) + \xi, \quad \xi \sim N(0, 2 a \epsilon T I), \qquad
  x \leftarrow x + p,$$

with a batch gradient, friction a and no accept step. Reference: T. Chen, E. B. Fox and C. Guestrin, Stochastic
gradient Hamiltonian Monte Carlo, ICML 2014, eq. 15 with $\hat\beta = 0$, doi:10.48550/arXiv.1402.4102.
"""

from __future__ import annotations

from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.budget import DRAWS, MOST_DRAWS, Budget, BudgetProposal
from bnnviz.samplers.discrete import StepSize
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.sgmcmc.base import Move, StochasticGradient

_AUTOMATIC_BATCH, _FEWEST_MOVES = 200, 1000


@REGISTRY.add
class SGHMC(StochasticGradient):
    """Stochastic-gradient Hamiltonian Monte Carlo with friction, without a Metropolis test.

    v <- (1 - a) v - eps grad U + N(0, 2 a eps T), x <- x + v: friction a removes the energy that gradient noise adds.
    ``friction=0`` is the naive version, which has no stationary distribution if gradients are noisy. Source: Chen, Fox
    and Guestrin 2014, eq. 15 with beta = 0.
    """

    registered = "sghmc"
    title = "SGHMC"

    friction = settings.Number(
        0.1,
        bounds=(0.0, 1.0),
        step=0.01,
        live=True,
        doc="Fraction of the velocity that is removed in each step. 0: without friction.",
    )

    @classmethod
    def proposal(cls, budget: Budget) -> BudgetProposal | None:
        """Return moves by batches of 200 rows, a third as warm-up; None if there are few rows or moves."""
        if budget.rows < 4 * _AUTOMATIC_BATCH:
            return None
        descent = int(min(max(0.1 * budget.gradients, 50), 1000))
        moves = (budget.gradients - descent) * budget.rows / (4 * _AUTOMATIC_BATCH)
        if moves < _FEWEST_MOVES:
            return None
        every = max(1, round(0.67 * moves / DRAWS))
        draws = int(min(DRAWS, 0.67 * moves // every))
        given = {"batch_size": _AUTOMATIC_BATCH, "thin": every, "start": "mode", "mode_steps": descent}
        reason = f"{moves:,.0f} moves with batches of {_AUTOMATIC_BATCH} rows fit in the time"
        return BudgetProposal(given, draws // 2, MOST_DRAWS, reason)

    def move(self, rng: RandomNumbers, x: Tensor, momentum: Tensor, g: Tensor, size: Tensor) -> Move:
        """Update the momentum by friction, gradient and noise, then move by it."""
        drift = size * g
        noise = (2 * self.friction * size * self.temperature).sqrt() * rng.normal(x.shape, x.dtype)
        momentum = (1 - self.friction) * momentum - drift + noise
        return Move(x + momentum, momentum, drift, noise)

    def draw_momentum(self, rng: RandomNumbers, like: Tensor, adaptation: StepSize) -> Tensor:
        """Draw from N(0, eps T), which is invariant as eps goes to 0."""
        return (self.size(adaptation) * self.temperature) ** 0.5 * rng.normal(like.shape, like.dtype)
