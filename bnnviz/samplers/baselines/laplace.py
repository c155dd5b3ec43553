r"""Sample from Laplace approximations.

With m a mode of $\pi(x) \propto \exp(-U(x))$ and P the curvature of U there, draws are independent draws from
$N(m, P^{-1})$. References: D. J. C. MacKay, A practical Bayesian framework for backpropagation networks, Neural
Computation 4 (1992), 448-472, doi:10.1162/neco.1992.4.3.448; E. Daxberger and others, Laplace redux: effortless
Bayesian deep learning, NeurIPS 2021, doi:10.48550/arXiv.2106.14806.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.samplers.base import REGISTRY, Sampler, Traits, counters, length, preset
from bnnviz.samplers.baselines import newton
from bnnviz.samplers.baselines.text import LaplaceText
from bnnviz.samplers.random import RandomNumbers, log_normal
from bnnviz.targets import Target

_MOST = 5000  # maximum number of weights for a full matrix: 100 MB


class State(NamedTuple):
    """State between two draws: the last draws (chains, dim), their number, and the alive chains (chains,)."""

    x: Tensor
    count: Tensor
    alive: Tensor


class Info(NamedTuple):
    """Info of one draw for every chain, shape (chains,)."""

    distance: Tensor  # Distance from the mode
    failed: Tensor  # bool: The chain met a non-finite value


@REGISTRY.add
class Laplace(Sampler):
    """Laplace approximation: normal distribution at the mode with the curvature of U at the mode.

    A descent by Adam from each chain's random start finds the mode, the lowest of all ends. Newton steps continue if
    the gradient there is not yet zero; if they do not converge, the run is refused. The precision is the Gauss-Newton
    matrix of the negative log likelihood plus the prior's precision. On other densities it is the Hessian, and a mode
    where that is not positive is refused. ``structure="diagonal"`` omits the correlations, ``subset="last_layer"``
    fixes all other weights at the mode. Draws are independent and count no gradients, nor does the curvature. They are
    draws of weights, and the network itself is evaluated at each, unlike the linearised predictive of Immer et al.
    2021, the default of laplace-torch. Source: MacKay 1992; Daxberger et al. 2021. Their laplace-torch is not wrapped:
    it needs a dozen more packages, lacks Bernoulli likelihoods of one logit and learned noise, and keeps a separate
    module, whereas all draws here are flat vectors of the target. Its matrices are the same.
    """

    registered = "laplace"
    title = "Laplace approximation"
    traits = Traits(exact=False, converges=False, has_density=True)
    needs_mode = True
    start = "mode"
    gradients_per_step = 0
    info_means = {"distance": "distance to the mode"}
    text = LaplaceText

    subset = settings.Choice(
        "all",
        objects=["all", "last_layer"],
        label="Weights",
        doc="all: all weights are random. last_layer: only the weights of the last layer are random; the others are"
        " fixed at the mode.",
    )
    structure = settings.Choice(
        "full",
        objects=["full", "diagonal"],
        doc=f"full: full precision matrix, for up to {_MOST:,} weights. diagonal: diagonal precision matrix.",
    )
    mode_steps = settings.Integer(3000, bounds=(1, 100_000), doc="Number of Adam steps for finding the mode.")

    presets = [
        preset(
            "last_layer",
            "Last layer",
            "Full covariance of the last layer, for large networks.",
            subset="last_layer",
            structure="full",
        ),
        preset(
            "diagonal",
            "Diagonal",
            "Diagonal covariance of all weights, for networks of any size.",
            subset="all",
            structure="diagonal",
        ),
    ]

    def check(self, target: Target) -> None:
        """Raise if there is no last layer, or if a matrix has too many weights."""
        if self.subset == "last_layer" and target.last_layer() is None:
            raise BnnvizError(
                f"subset = last_layer needs a network, and {target.describe_value()} has no layers; choose all.",
                "subset",
            )
        first, last, _ = self._part(target).indices(target.dim)
        if self.structure == "full" and last - first > _MOST:
            raise BnnvizError(
                f"A full matrix of {last - first:,} weights is too large (at most {_MOST:,}); choose structure ="
                " diagonal, or subset = last_layer.",
                "structure",
            )

    def _part(self, target: Target) -> slice:
        return target.last_layer() if self.subset == "last_layer" else slice(None)

    def refined_mode(self, target: Target, mode: Tensor) -> Tensor:
        """Return the mode (dim,) by Newton steps from the end of Adam's descent; raise if there is none."""
        part = self._part(target)
        first, last, _ = part.indices(target.dim)
        if self.structure == "full" or last - first <= newton.MOST:
            mode = newton.refined(target, mode, part)
            precision = newton.curvature(target, mode, part)
            precision = precision if self.structure == "full" else precision.diagonal()
        else:
            precision = target.curvature_diagonal(mode, part).double() + (target.prior_precision or 0.0)
        away = newton.distance(target, mode, part, precision)
        if away < newton.FAR:
            return mode
        if bool(torch.isfinite(precision).all()):
            curvatures = precision if precision.ndim == 1 else torch.linalg.eigvalsh(precision)
            self._refuse_saddle(target, int((curvatures <= 0).sum()))
        if not newton.falls(target, mode, part, precision):
            raise BnnvizError(
                "At the lowest point found, the gradient of U jumps or its curvature is not finite (a kink, a root),"
                " so there is no normal approximation there; choose another sampler.",
                "sampler",
            )
        raise BnnvizError(
            f"The descent has not reached a mode: it is about {away**0.5:.2g} posterior standard deviations away in"
            " each direction; raise mode_steps, scale the inputs, or choose another sampler.",
            "mode_steps",
        )

    def set_mode(self, mode: Tensor | None) -> None:
        """Compute the curvature at a mode (dim,)."""
        if mode is None:
            return
        self.mode, part = mode, self._part(self.target)
        prior = self.target.prior_precision or 0.0
        if self.structure == "diagonal":
            precision = self.target.curvature_diagonal(mode, part).double() + prior
            self._refuse_saddle(self.target, int((precision <= 0).sum()))
            self._refuse_saddle(self.target, newton.plateaus(self.target, mode, part, precision))
            self.scale = precision.rsqrt().to(mode.dtype)
            return
        precision = self.target.curvature_matrix(mode, part).double()
        precision.diagonal().add_(prior)
        factor, failed = torch.linalg.cholesky_ex(precision)
        if bool(failed):
            self._refuse_saddle(self.target, max(1, int((torch.linalg.eigvalsh(precision) <= 0).sum())))
        self._refuse_saddle(self.target, newton.plateaus(self.target, mode, part, precision))
        # With P = L L', the rows of z L^-1 have the covariance P^-1.
        unit = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
        # Rows in memory order, as a traced program stores them: another order rounds products differently.
        self.scale = torch.linalg.solve_triangular(factor, unit, upper=False).to(mode.dtype).contiguous()

    def _refuse_saddle(self, target: Target, directions: int) -> None:
        if directions:
            everywhere = directions == target.dim and target.prior_precision is None
            sign = "is this a log density? U must be minus it"
            remedy = sign if everywhere else "raise mode_steps, or choose another sampler"
            raise BnnvizError(
                f"At the lowest point found, the curvature of U is not positive in {directions} of"
                f" {target.dim} directions (a saddle, a plateau or a kink), so there is no normal approximation"
                f" there; {remedy}.",
                "mode_steps",
            )

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their initial positions."""
        return State(x0, *counters(x0))

    def kernel(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Make a draw for every chain."""
        away = self._away(rng.normal((len(state.x), len(self.scale)), state.x.dtype))
        after, failed = self.moved(state, torch.isfinite(away).all(1), x=self.mode + away)
        return after, Info(length(away), failed)

    def approximation(self, rng: RandomNumbers, state: State, count: int) -> tuple[Tensor, Tensor]:
        """Return draws (count, dim) and the log of their density: that of the free weights, given the others."""
        z = rng.normal((count, len(self.scale)), self.scale.dtype)
        sds = self.scale if self.scale.ndim == 1 else self.scale.diagonal()
        return self.mode + self._away(z), log_normal(z, sds.double())

    def _away(self, z: Tensor) -> Tensor:
        """Return deviations (n, dim) from the mode, from standard normal numbers (n, free weights)."""
        away = z * self.scale if self.scale.ndim == 1 else z @ self.scale
        first, last, _ = self._part(self.target).indices(self.target.dim)
        return torch.nn.functional.pad(away, (first, self.target.dim - last))
