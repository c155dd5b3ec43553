r"""Sample from Laplace approximations.

With m a mode of $\pi(x) \propto \exp(-U(x))$ and P the curvature of U there, draws are independent ones of
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
from bnnviz.samplers.base import REGISTRY, Sampler, Traits, counters, length
from bnnviz.samplers.baselines import newton
from bnnviz.samplers.baselines.text import LaplaceText
from bnnviz.samplers.random import RandomNumbers, log_normal
from bnnviz.targets import Target

_MOST = 5000  # weights that a full matrix is made of: 100 MB


class State(NamedTuple):
    """All chains between two draws: the last ones (chains, dim), their number, and which chains are alive (chains,)."""

    x: Tensor
    count: Tensor
    alive: Tensor


class Info(NamedTuple):
    """What one draw is, for every chain, shape (chains,)."""

    distance: Tensor  # From the mode
    failed: Tensor  # bool: The chain met a value that is not finite


@REGISTRY.add
class Laplace(Sampler):
    """The Laplace approximation: the normal law around the posterior's mode that has the curvature which U has there.

    A descent by Adam from each chain's random start finds the mode, the deepest of all chains' ends, and steps of
    Newton's go on where the gradient there is not zero yet; where they do not arrive it is refused. The precision is
    the Gauss-Newton matrix of the negative log likelihood plus the prior's precision. On a density that is no network
    it is the Hessian, and a mode where that is not positive is refused. ``structure="diagonal"`` forgets the
    correlations, ``subset="last_layer"`` keeps all other weights at the mode. Draws are independent and cost no
    gradient; neither does the curvature, as elsewhere. They are of weights, and a network is evaluated at each as it
    is: the linearised predictive of Immer et al. 2021, which laplace-torch has for its default, is not this one.
    Source: MacKay 1992; Daxberger et al. 2021. Their laplace-torch is not wrapped: it needs a dozen more packages,
    torchvision and three curvature backends among them, knows no Bernoulli likelihood of one logit nor a learned noise,
    and keeps a module of its own where all draws here are flat vectors of the target; its matrices are the same ones.
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
        doc="all: every weight varies. last_layer: those of the last layer do, the others stay at the mode.",
    )
    structure = settings.Choice(
        "full",
        objects=["full", "diagonal"],
        doc=f"full: the whole precision matrix, for up to {_MOST:,} weights. diagonal: its diagonal alone.",
    )
    mode_steps = settings.Integer(3000, bounds=(1, 100_000), doc="Steps of Adam on the way to the mode.")

    presets = [
        {
            "name": "last_layer",
            "title": "Last layer",
            "doc": "The whole matrix of the last layer, as is usual for large networks.",
            "settings": {"subset": "last_layer", "structure": "full"},
        },
        {
            "name": "diagonal",
            "title": "Diagonal",
            "doc": "All weights, without their correlations: for networks of any size.",
            "settings": {"subset": "all", "structure": "diagonal"},
        },
    ]

    def check(self, target: Target) -> None:
        """Raise where there is no last layer, or too many weights for a matrix."""
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
        """Return the mode (dim,) by Newton's steps from where Adam has come to.

        Raises
        ------
        BnnvizError
            If the gradient there is not zero, in the metric of the curvature.
        """
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
                "At the lowest point that was found the gradient of U jumps or its curvature is not finite (a kink, a"
                " root), so there is no normal approximation there; choose another sampler.",
                "sampler",
            )
        raise BnnvizError(
            f"The descent has not come to a mode: it is about {away**0.5:.2g} posterior standard deviations away in"
            " each direction; raise mode_steps, scale the inputs, or choose another sampler.",
            "mode_steps",
        )

    def set_mode(self, mode: Tensor | None) -> None:
        """Find the curvature at a mode (dim,)."""
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
        self.scale = torch.linalg.solve_triangular(factor, unit, upper=False).to(mode.dtype)

    def _refuse_saddle(self, target: Target, directions: int) -> None:
        if directions:
            everywhere = directions == target.dim and target.prior_precision is None
            sign = "is this a log density? U must be minus it"
            remedy = sign if everywhere else "raise mode_steps, or choose another sampler"
            raise BnnvizError(
                f"At the lowest point that was found the curvature of U is not positive in {directions} of"
                f" {target.dim} directions (a saddle, a plateau or a kink), so there is no normal approximation"
                f" there; {remedy}.",
                "mode_steps",
            )

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their starting points."""
        return State(x0, *counters(x0))

    def kernel(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Make a draw for every chain."""
        away = self._away(rng.normal((len(state.x), len(self.scale)), state.x.dtype))
        after, failed = self.moved(state, torch.isfinite(away).all(1), x=self.mode + away)
        return after, Info(length(away), failed)

    def approximation(self, rng: RandomNumbers, state: State, count: int) -> tuple[Tensor, Tensor]:
        """Return draws (count, dim) and the log of their density: of the weights that vary, given the others."""
        z = rng.normal((count, len(self.scale)), self.scale.dtype)
        sds = self.scale if self.scale.ndim == 1 else self.scale.diagonal()
        return self.mode + self._away(z), log_normal(z, sds.double())

    def _away(self, z: Tensor) -> Tensor:
        """Return how far (n, dim) draws are from the mode, by standard normal numbers (n, weights that vary)."""
        away = z * self.scale if self.scale.ndim == 1 else z @ self.scale
        first, last, _ = self._part(self.target).indices(self.target.dim)
        return torch.nn.functional.pad(away, (first, self.target.dim - last))
