r"""Define functionals: distributions that a sampler moves as states, and the draws from them.

A functional is the law of $\theta(z)$, $z \sim N(0, I)$, with coefficients c (chains, K, dim): a mean-field Gaussian
$\theta = \mu + \sigma(\rho) z$, or a sum of Hermite polynomials $\theta = \sum_k a_k \mathrm{He}_k(z)$. Its energy is

$$E(c) = \mathrm E_z[U(\theta(z))] - T\, \mathrm E_z[\log |\theta'(z)|],$$

the mean of U minus, optionally, T times the entropy. Samplers draw c from the density $e^{-E(c) / T}$ with respect to
the Lebesgue measure of the coefficients. References: Functional Bayesian neural networks for model uncertainty
quantification, submitted to ICLR 2019; Beskos, Pinski, Sanz-Serna and Stuart 2011, doi:10.1016/j.spa.2011.06.003.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.polynomial import hermite_e
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import Sampler
from bnnviz.samplers.moves import MoveDrawCollector, MoveTrace
from bnnviz.samplers.observers import Draws, StepBatch
from bnnviz.samplers.random import RandomNumbers

_NODES = 20  # of the quadrature in one dimension: exact for polynomials of degree 39
_KEPT = 500  # moves whose functionals are used for importance weights
_SHOWN = 24  # in one plot
_STEPS, _SIDE = 8001, 6.0  # grid of z, for a density without a formula
_SEED_SHIFT = 1_000_003
_WEIGHED_DIM, _MIXED, _ROWS = 4, 1000, 4096  # limits of the weights: dimensions, functionals, draws at a time


class MeanField:
    """theta = mu + sd z, c = (mu, rho): the mean-field Gaussian; z and results are (chains, nodes or 1, dim)."""

    def __init__(self, link: str) -> None:
        self.softplus = link == "softplus"

    def first(self, centre: Tensor, sd: float) -> Tensor:
        """Return the coefficients of N(centre, sd^2)."""
        rho = np.log(np.expm1(sd)) if self.softplus else np.log(sd)
        return torch.stack([centre, torch.full_like(centre, float(rho))], 1)

    def sd(self, c: Tensor) -> Tensor:
        """Return the standard deviations (chains, 1, dim)."""
        return torch.nn.functional.softplus(c[:, 1:]) if self.softplus else c[:, 1:].exp()

    def sd_slope(self, c: Tensor) -> Tensor:
        """Return the derivative of sd with respect to rho."""
        return torch.sigmoid(c[:, 1:]) if self.softplus else c[:, 1:].exp()

    def at(self, c: Tensor, z: Tensor) -> Tensor:
        """Return theta(z) = mu + sd z."""
        return c[:, :1] + self.sd(c) * z

    def slopes(self, c: Tensor, z: Tensor) -> list[Tensor]:
        """Return the derivative of theta(z) by each coefficient: 1, and z times the derivative of sd."""
        return [torch.ones_like(z), self.sd_slope(c) * z]

    def stretch(self, c: Tensor, z: Tensor) -> Tensor:
        """Return the derivative of theta by z: sd."""
        return self.sd(c)

    def stretch_slopes(self, c: Tensor, z: Tensor) -> list[Tensor]:
        """Return the derivative of the stretch by each coefficient: 0, and the derivative of sd."""
        slope = self.sd_slope(c)
        return [torch.zeros_like(slope), slope]

    def centre(self, c: Tensor) -> Tensor:
        """Return mu."""
        return c[:, 0]

    def density(self, c: Tensor, line: Tensor) -> Tensor:
        """Return densities (chains, points) as means over intervals around equally spaced points (points,)."""
        width = line[1] - line[0]
        edges = torch.cat([line - width / 2, line[-1:] + width / 2])
        return torch.special.ndtr((edges - c[:, 0]) / self.sd(c)[:, :, 0]).diff(dim=1) / width


class Hermite:
    """theta = sum of a_k He_k(z), c = (a_0, ..., a_(D-1)): a finite sum of basis functions, after Beskos et al. 2011.

    With at least four terms it may have two modes. If theta is not monotone in z, the mean of log |theta'(z)| exceeds
    the entropy, because overlapping branches are counted separately.
    """

    def __init__(self, terms: int) -> None:
        self.terms = terms

    def first(self, centre: Tensor, sd: float) -> Tensor:
        """Return the coefficients of N(centre, sd^2)."""
        c = centre.new_zeros(len(centre), self.terms, centre.shape[1])
        c[:, 0], c[:, 1] = centre, sd
        return c

    def _basis(self, z: Tensor) -> list[Tensor]:
        basis = [torch.ones_like(z), z]
        for k in range(2, self.terms):
            basis.append(z * basis[-1] - (k - 1) * basis[-2])
        return basis

    def at(self, c: Tensor, z: Tensor) -> Tensor:
        """Return the sum."""
        return sum(c[:, k : k + 1] * term for k, term in enumerate(self._basis(z)))

    def slopes(self, c: Tensor, z: Tensor) -> list[Tensor]:
        """Return the basis functions."""
        return self._basis(z)

    def stretch(self, c: Tensor, z: Tensor) -> Tensor:
        """Return the derivative of the sum with respect to z: He_k' = k He_(k-1)."""
        return sum(c[:, k : k + 1] * slope for k, slope in enumerate(self.stretch_slopes(c, z)))

    def stretch_slopes(self, c: Tensor, z: Tensor) -> list[Tensor]:
        """Return the basis functions' derivatives."""
        basis = self._basis(z)
        return [torch.zeros_like(z)] + [k * basis[k - 1] for k in range(1, self.terms)]

    def centre(self, c: Tensor) -> Tensor:
        """Return a_0."""
        return c[:, 0]

    def density(self, c: Tensor, line: Tensor) -> Tensor:
        """Return densities (chains, points) at equally spaced points, from a histogram of theta over z."""
        z = torch.linspace(-_SIDE, _SIDE, _STEPS, dtype=c.dtype, device=c.device)
        theta = self.at(c, z[None, :, None].expand(len(c), -1, -1))[..., 0].cpu().numpy()
        mass = torch.exp(-0.5 * z.square()).cpu().numpy()
        width = float(line[1] - line[0])
        edges = np.append(line.cpu().numpy() - width / 2, float(line[-1]) + width / 2)
        rows = [np.histogram(row, edges, weights=mass)[0] / (mass.sum() * width) for row in theta]
        return torch.as_tensor(np.array(rows), dtype=c.dtype, device=c.device)


class Energy(NamedTuple):
    """Mean of U and entropy (chains,) of functionals, and the gradient (chains, K, dim) of their difference."""

    expected: Tensor
    entropy: Tensor
    gradient: Tensor


def energy(
    reading: MeanField | Hermite, source: Any, c: Tensor, nodes: Tensor, weights: Tensor, share: float
) -> Energy:
    """Return the energy of functionals c from nodes (chains or 1, nodes, dim) and their weights (nodes,)."""
    nodes = nodes.expand(len(c), -1, -1)
    theta = reading.at(c, nodes)
    potential, g = source.gradient(theta.flatten(0, 1))
    potential, g = potential.view(theta.shape[:2]), g.view(theta.shape)
    stretch = reading.stretch(c, nodes).expand_as(theta)
    each = weights[:, None]
    entropy = (each * stretch.abs().log()).sum((1, 2))
    gradient = torch.stack([(each * g * slope).sum(1) for slope in reading.slopes(c, nodes)], 1)
    if share:
        pulls = [(each * slope.expand_as(theta) / stretch).sum(1) for slope in reading.stretch_slopes(c, nodes)]
        gradient = gradient - share * torch.stack(pulls, 1)
    return Energy((weights * potential).sum(1), entropy, gradient)


def quadrature(like: Tensor) -> tuple[Tensor, Tensor]:
    """Return nodes (1, nodes, 1) and weights (nodes,) for a mean over a standard normal coordinate."""
    nodes, weights = hermite_e.hermegauss(_NODES)
    return like.new_tensor(nodes)[None, :, None], like.new_tensor(weights / weights.sum())


class FunctionalDrawCollector(MoveDrawCollector):
    """Draw states from functionals by a separate generator, so that draws do not depend on the blocks of moves."""

    def __init__(self, sampler: Any, state: Any, rng: torch.Generator) -> None:
        super().__init__(sampler, state)
        self._each = sampler.draws_each
        seed = (rng.initial_seed() + _SEED_SHIFT + int(state.count.max())) % 2**63
        self._rng = torch.Generator(rng.device).manual_seed(seed)
        self.kept: list[Tensor] = []

    def collect(self, step_batch: StepBatch) -> Draws:
        """Return the draws from the functionals that are due."""
        steps, chains, index = self.due(step_batch)
        parts = []
        # Step by step: the random numbers depend on how many are requested at once.
        for step in steps.unique_consecutive().tolist():
            c = step_batch.state_after(step).c  # (chains, K, dim)
            if self._sampler.weighs:
                self.kept = [*self.kept, c][-_KEPT:]
            shape = (len(c), self._each, c.shape[2])
            z = torch.randn(shape, generator=self._rng, device=self._rng.device, dtype=c.dtype)
            parts.append(self._sampler.reading.at(c, z))
        if not parts:
            return Draws(chains, chains, step_batch.after.x[:0])
        place = steps.unique_consecutive(return_inverse=True)[1]
        theta = torch.stack(parts)[place, chains].flatten(0, 1)
        number = torch.arange(self._each, device=chains.device).repeat(len(chains))
        stats = self.stats(step_batch, steps, chains)
        return Draws(
            chains.repeat_interleave(self._each),
            index.repeat_interleave(self._each) * self._each + number,
            theta,
            stats=None if stats is None else stats.repeat_interleave(self._each, dim=0),
            step=steps.repeat_interleave(self._each),
        )

    def save(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return super().save() | {"rng": self._rng.get_state(), "kept": self.kept}

    def load(self, saved: dict[str, Any]) -> None:
        """Restore a saved state."""
        super().load(saved)
        self._rng.set_state(saved["rng"])
        self.kept = [part.to(self._rng.device) for part in saved["kept"]]


class FunctionalTrace(MoveTrace):
    """Follow one chain: the means of its functionals and, in one dimension, their densities."""

    def __init__(self, sampler: Any) -> None:
        super().__init__(sampler)
        self._functionals: list[Tensor] = []
        self._accepted: list[bool] = []

    def begin(self, state: Any, chain: int) -> None:
        """Start at the watched chain's state, before its first step."""
        super().begin(state, chain)
        self._functionals, self._accepted = [state.c[chain]], [True]

    def record(self, step_batch: StepBatch, chain: int) -> None:
        """Record the watched chain's functionals."""
        super().record(step_batch, chain)
        states = [*step_batch.before[1:], step_batch.after]
        moved = [bool(info.accepted[chain]) if "accepted" in info._fields else True for info in step_batch.infos]
        self._functionals = [*self._functionals, *(state.c[chain] for state in states)][-_SHOWN:]
        self._accepted = [*self._accepted, *moved][-_SHOWN:]

    def curves(self, line: np.ndarray) -> dict[str, np.ndarray]:
        """Return the densities of the last functionals over a line, the newest last, their acceptance and numbers."""
        shown = self._functionals[-_SHOWN:]
        y = self.sampler.reading.density(torch.stack(shown).double(), torch.as_tensor(line))
        number = self.count + 1 - len(shown) + np.arange(len(shown))
        return {"y": y.cpu().numpy(), "accepted": np.array(self._accepted[-_SHOWN:]), "number": number}


class Functional(Sampler):
    """Shared settings of samplers of functionals; precedes the base of their moves in the class order."""

    first_sd = settings.Number(
        None,
        bounds=(1e-4, 100.0),
        scale="log",
        allow_None=True,
        empty="1, on a network 0.1",
        doc="Standard deviation of the initial functional, N(0, sd^2). For networks it is centred at the starting"
        " point.",
    )
    draws_each = settings.Integer(
        5, bounds=(1, 10_000), scale="log", live=True, doc="Number of draws from each functional (M in the paper)."
    )

    def begun(self, x0: Tensor) -> Tensor:
        """Return the initial coefficients (chains, K, dim)."""
        on_network = self.target.start_at_mode
        sd = self.first_sd if self.first_sd is not None else 0.1 if on_network else 1.0
        return self.reading.first(x0 if on_network else torch.zeros_like(x0), sd)

    def reach(self, state: Any) -> Tensor:
        """Return points (chains, dim) one standard deviation from each functional's centre."""
        return self.reading.at(state.c, torch.ones_like(state.c[:, :1]))[:, 0]

    def draw_collector(self, rng: RandomNumbers, state: Any) -> FunctionalDrawCollector:
        """Return a collector of draws from the functionals from this state on."""
        return FunctionalDrawCollector(self, state, rng.generator)

    def chain_trace(self) -> FunctionalTrace:
        """Return an empty trace."""
        return FunctionalTrace(self)

    @property
    def weighs(self) -> bool:
        """Whether draws can be weighted: the mixture's density must be known and low-dimensional."""
        return isinstance(self.reading, MeanField) and self.target.dim <= _WEIGHED_DIM

    def event_weights(self, x: Tensor, draw_collector: FunctionalDrawCollector) -> Tensor:
        """Return importance weights (n,) of draws x (n, dim): exp(-U) over the density of the functionals' mixture."""
        c = torch.cat(draw_collector.kept)
        c = c[:: max(1, len(c) // _MIXED)]
        mean, sd = self.reading.centre(c), self.reading.sd(c)[:, 0]
        known = (torch.isfinite(mean) & torch.isfinite(sd) & (sd > 0)).all(1)  # a chain may overflow
        each = torch.distributions.Normal(mean[known].double(), sd[known].double())
        parts = [torch.logsumexp(each.log_prob(part[:, None].double()).sum(-1), 1) for part in torch.split(x, _ROWS)]
        logs = -self.target.defined_potential(x).double() / self.temperature - torch.cat(parts)
        # Draws outside the support of the target have zero weight.
        return torch.softmax(logs.nan_to_num(-torch.inf, -torch.inf, -torch.inf), 0)
