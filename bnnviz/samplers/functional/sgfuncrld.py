r"""Sample by stochastic-gradient functional Riemannian Langevin dynamics.

The state is a mean-field Gaussian with coefficients $c = (\mu, \rho)$, and g the gradient of its energy
$E(c) = \mathrm E[U] - T \cdot \text{entropy}$ at one draw $\theta = \mu + \sigma(\rho) z$. With G a running mean of
$g^2$ and $P = G^{-1/2}$,

$$c \leftarrow c - \epsilon P g + \xi, \qquad \xi \sim N(0, 2 \epsilon T P).$$

A P that depends on the state requires its divergence in the drift (Patterson and Teh 2013, eq. 5):

$$c \leftarrow c - \epsilon (P g - T \Gamma) + \xi, \qquad \Gamma_i = \partial P_i / \partial c_i.$$

References: Functional Bayesian neural networks for model uncertainty quantification, submitted to ICLR 2019, Algorithm
1, which uses the running mean of g instead of g and $P^2$ for the last P; S. Patterson and Y. W. Teh, Stochastic
gradient Riemannian Langevin dynamics on the probability simplex, NeurIPS 2013.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, Traits, counters, length, preset
from bnnviz.samplers.functional.base import Functional, MeanField
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.sgmcmc.base import Info, StochasticGradient
from bnnviz.samplers.sgmcmc.psgld import Preconditioning
from bnnviz.targets import Target

_INITIAL_GRADIENTS = 20  # gradients for the initial mean square
_MEMORIES = 2  # length of the tuning, in memory lengths of the mean square
_SAFE = 0.1  # step size, in units of the inverse curvature
_LEAST_CURVATURE = 2.0  # of the energy along log sd, at its minimum
_FLOOR = 1e-8


class State(NamedTuple):
    """State of all chains between two moves."""

    x: Tensor  # (chains, dim): The functionals' means
    # (chains, 2, dim): Running means of the gradient and of its square, corrected for initialisation (as in Adam)
    mean: Tensor
    # (chains,): As in `bnnviz.samplers.discrete.State`
    count: Tensor
    alive: Tensor
    c: Tensor  # (chains, 2, dim): The coefficients (mu, rho), sd = softplus(rho)
    square: Tensor
    adaptation: Preconditioning


@REGISTRY.add
class SGFuncRLD(Functional, StochasticGradient):
    """Langevin dynamics of mean-field Gaussians over the weights: c = (mu, rho), sd = softplus(rho).

    The energy is the mean of U minus the entropy, that is E[nll] + KL(functional, prior). Its gradient is estimated
    from one draw theta = mu + sd z and a batch. The sampled density is exp(-energy) with respect to d mu d rho.
    ``variant="corrected"``: c - eps P g + N(0, 2 eps P T) with P = G^(-1/2) and G the running mean of g^2, fixed after
    the tuning. ``variant="paper"``, Algorithm 1 as printed: c - eps G^(-1/2) m + N(0, 2 eps T / G), with a running mean
    m of the gradient and a G that continues to change. Its noise does not match its drift: large gradients make it far
    too cold, with rare large moves where they are small. Draws follow the mixture of functionals, which is wider than
    the target (twice its variance on an isotropic Gaussian); the paper's eq. 5 lacks the 1/M.
    Source: the functional-BNN paper, Algorithm 1.
    """

    registered = "sgfuncrld"
    title = "SGFuncRLD"
    width = 7
    traits = Traits(exact=False, functional=True, weighed_by="truth / mixture")

    variant = settings.Choice(
        "corrected",
        objects=["corrected", "riemannian", "paper"],
        doc="corrected: noise that matches the drift, and a preconditioner that is fixed after the tuning. riemannian:"
        " the inverse of the Fisher information of each functional and of the density, with the Gamma term. paper: as"
        " printed, with too little noise.",
    )
    averaging = settings.Number(
        0.9,
        bounds=(0.0, 0.9999),
        step=0.01,
        when={"variant": ["paper"]},
        doc="Decay rate of the mean gradient per step, beta 1.",
    )
    smoothing = settings.Number(
        0.999, bounds=(0.0, 0.9999), step=0.001, doc="Decay rate of the mean square per step, beta 2."
    )

    presets = [
        preset("paper", "Algorithm 1 as printed", "The noise is far too small for the drift.", variant="paper"),
        preset(
            "riemannian",
            "With the Gamma term",
            "The metric is the Fisher information; the drift contains the divergence of its inverse.",
            variant="riemannian",
        ),
    ]

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target."""
        self.reading = MeanField("softplus")
        super().prepare(target, mode)

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains with their first functionals, and the mean square of a few gradients."""
        self.largest_curvature(rng, x0)  # its random numbers come first
        c, batch = self.begun(x0), self.source.draw
        draws = [self._gradient(rng, c, batch((), len(x0), rng))[1].square() for _ in range(_INITIAL_GRADIENTS)]
        square, centre = torch.stack(draws).mean(0), self.reading.centre(c)
        found = Preconditioning(self._size_at(rng, c, square), False)
        return State(centre, torch.zeros_like(c), *counters(x0), c, square, found)

    def _size_at(self, rng: RandomNumbers, c: Tensor, square: Tensor) -> float:
        """Return a tenth of the inverse of the largest curvature at functionals c, preconditioned by P (2, dim)."""
        riemannian = self.variant == "riemannian"
        shape = self._metric(c, square)[0].mean(0) if riemannian else self._preconditioner(square.mean(0))
        curvature = self.largest_curvature(rng, self.reading.centre(c), shape[0].sqrt())
        return _SAFE / max(curvature, _LEAST_CURVATURE * float(shape[1].max()))

    def _metric(self, c: Tensor, square: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inverse Fisher information with respect to (mu, rho), and its divergence, (chains, 2, dim).

        For N(mu, sd^2) it is 1 / sd^2 for mu and 2 / sd^2 for sd. The Fisher information of the density, F, is the
        mean square of its gradient, without which steps are unstable at large sd. So P is 1 / (F + 1 / sd^2) for mu.
        """
        sd, slope = self.reading.sd(c), self.reading.sd_slope(c)
        ratio, fisher = sd / slope, square[:, :1]
        shrinks = 1 + fisher * sd.square()
        # The slope of softplus is the logistic function, with derivative slope (1 - slope).
        grows = ratio - ratio.square() * (1 - slope)
        divergence = grows / shrinks - ratio.square() * fisher * sd * slope / shrinks.square()
        shape = torch.cat([sd.square(), 0.5 * ratio.square()], 1) / shrinks
        return shape, torch.cat([torch.zeros_like(sd), divergence], 1)

    def _preconditioner(self, square: Tensor) -> Tensor:
        return 1 / (_FLOOR + square.sqrt())

    def _gradient(self, rng: RandomNumbers, c: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return U at a draw of each functional (chains,), and its energy's gradient (chains, 2, dim)."""
        z = rng.normal((len(c), 1, c.shape[2]), c.dtype)
        potential, g = self.source.of(batch).gradient(self.reading.at(c, z)[:, 0])
        along = self.reading.sd_slope(c) * (g[:, None] * z - self.temperature / self.reading.sd(c))
        return potential, torch.cat([g[:, None], along], 1)

    def kernel(self, rng: RandomNumbers, state: State, batch: Any) -> tuple[State, Info]:
        """Move every chain's functional once."""
        potential, g = self._gradient(rng, state.c, batch)
        mean, square = self._remembered(state, g)
        size = self.sizes(state.adaptation, state.count)
        h = size[:, None, None].to(g.dtype)
        if self.variant == "riemannian":
            shape, divergence = self._metric(state.c, square)
            drift, scale = h * (shape * g - self.temperature * divergence), shape.sqrt()
        else:
            shape = self._preconditioner(square)
            drift = h * shape * (mean if self.variant == "paper" else g)
            scale = shape if self.variant == "paper" else shape.sqrt()
        noise = (2 * h * self.temperature).sqrt() * scale * rng.normal(g.shape, g.dtype)
        c = state.c - drift + noise
        finite = torch.isfinite(potential) & torch.isfinite(c).all((1, 2))
        after, failed = self.moved(state, finite, x=self.reading.centre(c), mean=mean, c=c, square=square)
        return after, Info(potential, size, length(drift.flatten(1)), length(noise.flatten(1)), failed)

    def _remembered(self, state: State, g: Tensor) -> tuple[Tensor, Tensor]:
        """Return the running means updated with a gradient; decreasing weights remove the initial values."""
        moves = (state.count + 1)[:, None, None]
        mean = state.mean + (_weight(self.averaging, moves) * (g - state.mean)).to(g.dtype)
        if state.adaptation.frozen:
            return mean, state.square
        if self.variant != "paper":
            moves = moves + _INITIAL_GRADIENTS
        return mean, state.square + (_weight(self.smoothing, moves) * (g.square() - state.square)).to(g.dtype)

    def is_tuned(self, state: State) -> bool:
        """Return whether the mean square no longer depends on its initial value."""
        return self.variant == "paper" or float(state.count.max()) * (1 - self.smoothing) >= _MEMORIES

    def freeze(self, rng: RandomNumbers, state: State) -> State:
        """Fix the step size, found again, and the preconditioner, except in the paper's variant."""
        if state.adaptation.frozen or self.variant == "paper":
            return state
        living = state.alive if bool(state.alive.any()) else ~state.alive
        size = self._size_at(rng, state.c[living], state.square[living])
        return state._replace(adaptation=Preconditioning(size, True))

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains restarted at x (chains, dim), with the adaptation kept."""
        c = self.begun(x)
        return state._replace(x=self.reading.centre(c), c=c)


def _weight(keep: float, moves: Tensor) -> Tensor:
    """Return the weight of a new value in a running mean after ``moves`` values, each keeping a share."""
    return (1 - keep) / (1 - keep**moves)
