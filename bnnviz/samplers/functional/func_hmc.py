r"""Sample by functional Hamiltonian Monte Carlo.

The state is a functional: the law of $\theta(z)$, z standard normal, with coefficients c. Hamiltonian Monte Carlo
(`bnnviz.samplers.mcmc.hmc`) moves c with the energy

$$E(c) = \mathrm E[U(\theta(z))] - T\, \mathrm E[\log |\theta'(z)|],$$

the mean of U minus T times the entropy. References: Functional Bayesian neural networks for model uncertainty
quantification, submitted to ICLR 2019, section 5.1; A. Beskos, F. J. Pinski,
J. M. Sanz-Serna and A. M. Stuart, Hybrid Monte Carlo on Hilbert spaces, Stochastic Processes and their Applications 121
(2011), 2201-2230, doi:10.1016/j.spa.2011.06.003; Horowitz 1991, doi:10.1016/0370-2693(91)90812-5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, Traits, counters, length
from bnnviz.samplers.functional.base import Energy, Functional, Hermite, MeanField, energy, quadrature
from bnnviz.samplers.mcmc.hamiltonian import Hamiltonian, StepSizeAndMetric
from bnnviz.samplers.mcmc.metric import Metric
from bnnviz.samplers.mcmc.text import LeapfrogText
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target


class State(NamedTuple):
    """State of all chains between two moves."""

    x: Tensor  # (chains, dim): The functionals' means
    # (chains, K, dim): Momenta of the coefficients, and the coefficients
    momentum: Tensor
    # (chains,): As in `bnnviz.samplers.discrete.State`
    count: Tensor
    alive: Tensor
    c: Tensor
    adaptation: StepSizeAndMetric


class Info(NamedTuple):
    """Info of one move for every chain, shape (chains,)."""

    # Energy terms after the move: mean of U, entropy, kinetic energy
    potential: Tensor
    entropy: Tensor
    kinetic: Tensor
    # As in `bnnviz.samplers.mcmc.hmc.Info`
    accepted: Tensor
    acceptance_rate: Tensor
    energy_error: Tensor
    jump_distance: Tensor  # Distance moved by the mean
    diverging: Tensor
    failed: Tensor  # bool: The energy was not finite at the chain's state


class FuncHMCText(LeapfrogText):
    """Describe the outcome of functionals, and their energy terms."""

    move = (
        "the energy changed by {energy_error:.3g}; the new functional, with acceptance probability"
        " {acceptance_rate:.2f}, was {fate}. Mean of U {potential:.3g}, entropy {entropy:.3g}."
    )
    table = {"Acceptance; entropy": "{accepted:.2f}; {entropy:.3g}"}
    words = "of which {accepted:.0%} were accepted, each a whole distribution to draw from"

    def more(self, state: Any, values: dict[str, float]) -> dict[str, Any]:
        """Return whether the functional was accepted."""
        return {"fate": "accepted" if values["accepted"] else "rejected: the functional stays and turns back"}


@REGISTRY.add
class FuncHMC(Functional, Hamiltonian):
    """Hamiltonian Monte Carlo on functionals: the state is a distribution that generates the draws.

    The energy of N(mu, sd^2) is the mean of U minus log sd. The velocity is partially refreshed, v <- a v +
    sqrt(1 - a^2) xi, and reversed after a rejection (Horowitz 1991). The paper gives learning rate .2, momentum a = .5
    and 10 moves, but neither the functionals nor the number of leapfrog steps: ``reading="mean_field"``, c = (mu,
    log sd), and 10 leapfrog steps are our choices, after its section 4.1; ``reading="hermite"`` is the finite sum of
    basis functions of its section 3 (Beskos et al. 2011). Without the entropy sd goes to 0, and the sampler becomes
    HMC. Draws follow the mixture of the functionals, which is wider than the target: twice its variance on an
    isotropic Gaussian. In few dimensions importance weights correct this. In one dimension means are computed by
    quadrature, otherwise by ``pairs`` of draws, redrawn for each move; the acceptance ignores their noise.
    Source: the functional-BNN paper, section 5.1.
    """

    registered = "func_hmc"
    title = "FuncHMC"
    info_means = {"accepted": "acceptance", "entropy": "entropy"}
    text = FuncHMCText
    traits = Traits(exact=False, warms_up_by_moves=True, functional=True, weighed_by="truth / mixture")

    num_leapfrog_steps = settings.Integer(
        10,
        bounds=(1, 1000),
        scale="log",
        live=True,
        label="Leapfrog steps",
        doc="Number of leapfrog steps of a trajectory.",
    )
    momentum_persistence = settings.Number(
        0.5,
        bounds=(0.0, 0.999),
        step=0.05,
        live=True,
        label="Momentum",
        doc="Fraction of the velocity that is kept between transitions.",
    )
    metric = settings.Choice(
        "unit",
        objects=["diagonal", "unit"],
        doc="Scales of the coefficients: all equal to one, or learned in the tuning.",
    )
    form = settings.Choice(
        "mean_field",
        objects=["mean_field", "hermite"],
        label="Reading",
        doc="Form of a functional. mean_field: N(mu, sd^2). hermite: a sum of Hermite polynomials of a normal.",
    )
    terms = settings.Integer(
        4,
        bounds=(2, 8),
        when={"form": ["hermite"]},
        doc="Number of Hermite polynomials. With at least 4, a functional can have two modes.",
    )
    entropy = settings.Boolean(
        True, live=True, doc="Subtract the entropy from the energy. Without it, the standard deviation converges to 0."
    )
    pairs = settings.Integer(
        4,
        bounds=(2, 1000),
        scale="log",
        live=True,
        doc="Number of pairs of draws for estimating the mean of U in two or more dimensions.",
    )

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target and choose the form of the functionals."""
        self.reading = MeanField("log") if self.form == "mean_field" else Hermite(self.terms)
        super().prepare(target, mode)
        self._nodes, self._weights = quadrature(torch.ones((), dtype=target.dtype, device=target.device))
        if target.dim > 1:
            self._weights = torch.full((2 * self.pairs,), 0.5 / self.pairs, dtype=target.dtype, device=target.device)

    @property
    def learned_dim(self) -> int:
        """Number of coefficients, each with a scale."""
        return (2 if self.form == "mean_field" else self.terms) * self.target.dim

    @property
    def gradients_per_step(self) -> int:
        """Single-row gradients that a move is charged."""
        return self.target.examples * (1 + self.num_leapfrog_steps) * len(self._weights)

    @property
    def width(self) -> int:
        """Number of values that a state stores per chain and coordinate."""
        return 1 + 2 * self.learned_dim // self.target.dim

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains with their first functionals."""
        adaptation, c = self.first_adaptation(rng, x0), self.begun(x0)
        return State(self.reading.centre(c), self.fresh_momentum(rng, c), *counters(x0), c, adaptation)

    def searched_size(self, rng: RandomNumbers, x: Tensor, metric: Metric, guess: float) -> float:
        """Return half the largest step with a stable leapfrog of the means along the largest curvature."""
        return self.largest_curvature(rng, x) ** -0.5

    def learned_point(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return the coefficients (chains, K dim), without gradients, which are noisy if estimated from draws."""
        return state.c.flatten(1), None

    def pre_draw(self, rng: RandomNumbers, state: State) -> tuple[Tensor, ...]:
        """Draw nodes (chains, nodes, dim): pairs z and -z with mean square 1; none in one dimension."""
        if self.target.dim == 1:
            return ()
        half = rng.normal((len(state.x), self.pairs, state.x.shape[1]), state.x.dtype)
        half = half / half.square().mean(1, keepdim=True).sqrt()
        return (torch.cat([half, -half], 1),)

    def _energy(self, c: Tensor, nodes: Tensor | None) -> tuple[Energy, Tensor]:
        nodes = self._nodes if nodes is None else nodes
        share = self.temperature if self.entropy else 0.0
        found = energy(self.reading, self.target, c, nodes, self._weights, share)
        return found, found.expected.double() - share * found.entropy.double()

    def kernel(self, rng: RandomNumbers, state: State, nodes: Tensor | None = None) -> tuple[State, Info]:
        """Simulate a trajectory of every chain's functional and accept or reject its end."""
        keep, c = self.momentum_persistence, state.c
        begun = keep * state.momentum + (1 - keep**2) ** 0.5 * self.fresh_momentum(rng, c)
        h = (self.size(state.adaptation) * state.adaptation.metric.scale).view(c.shape[1:])
        (here, before), momentum = self._energy(c, nodes), begun
        found, value = here, before
        for _ in range(self.num_leapfrog_steps):
            momentum = momentum - 0.5 * h * found.gradient
            c = c + h * momentum
            found, value = self._energy(c, nodes)
            momentum = momentum - 0.5 * h * found.gradient
        error = value + _kinetic(momentum) - before - _kinetic(begun)
        probability = self.acceptance(error)
        accepted = rng.uniform(probability.shape, probability.dtype) < probability
        taken = accepted[:, None, None]
        # After a rejection the kept momentum is reversed.
        c, momentum = torch.where(taken, c, state.c), torch.where(taken, momentum, -begun)
        finite = torch.isfinite(before)
        after, failed = self.moved(state, finite, x=self.reading.centre(c), momentum=momentum, c=c)
        expected, entropy = (torch.where(accepted, *parts) for parts in zip(found[:2], here[:2], strict=True))
        distance = length(after.x - state.x)
        return after, Info(
            *(expected, entropy, _kinetic(momentum), accepted.to(probability.dtype), probability),
            *(error, distance, self.diverging(error).to(probability.dtype), failed),
        )

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains restarted at x (chains, dim)."""
        c = self.begun(x)
        return state._replace(x=self.reading.centre(c), momentum=self.fresh_momentum(rng, c), c=c)


def _kinetic(v: Tensor) -> Tensor:
    return 0.5 * v.double().square().sum((1, 2))
