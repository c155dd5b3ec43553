"""Laplace approximations."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.discrete import Moving, State, length
from bnnviz.targets import Target

_MOST = 5000  # weights that a full matrix is made of: 100 MB


class Info(NamedTuple):
    """What one draw is, for every chain, shape (chains,).

    Attributes
    ----------
    distance : Tensor
        From the mode.
    failed : Tensor, bool
        The chain met a value that is not finite.
    """

    distance: Tensor
    failed: Tensor


@REGISTRY.add
class Laplace(Moving):
    """The Laplace approximation: the normal law around the posterior's mode that has the curvature which U has there.

    A descent by Adam from each chain's random start finds the mode, the deepest of all chains' ends; the precision is
    the Gauss-Newton matrix of the negative log likelihood plus the prior's precision. On a density that is no network
    it is the Hessian, and a mode where that is not positive is refused. ``structure="diagonal"`` forgets the
    correlations, ``subset="last_layer"`` keeps all other weights at the mode. Draws are independent and cost no
    gradient; neither does the curvature, as elsewhere. They are of weights, and a network is evaluated at each as it
    is: the linearised predictive of Immer et al. 2021, which laplace-torch has for its default, is not this one.
    Source: MacKay 1992; Daxberger et al. 2021. Their laplace-torch is not wrapped: it needs a dozen more packages,
    torchvision and three curvature backends among them, knows no Bernoulli likelihood of one logit nor a learnt noise,
    and keeps a module of its own where all draws here are flat vectors of the target; its matrices are the same ones.
    """

    registered = "laplace"
    title = "Laplace approximation"
    exact = False
    converges = False
    needs_mode = True
    start = "mode"
    told = ("distance",)
    waiting = "Nothing has been drawn yet."

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

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target, and find the curvature at its mode."""
        super().prepare(target, mode)
        if mode is not None:
            self.recentre(mode)

    def recentre(self, mode: Tensor) -> None:
        """Find the curvature at a mode (dim,)."""
        self.mode, part = mode, self._part(self.target)
        prior = self.target.prior_precision or 0.0
        if self.structure == "diagonal":
            precision = self.target.curvature_diagonal(mode, part).double() + prior
            self._refuse_saddle(int((precision <= 0).sum()))
            self.scale = precision.rsqrt().to(mode.dtype)
            return
        precision = self.target.curvature_matrix(mode, part).double()
        precision.diagonal().add_(prior)
        factor, failed = torch.linalg.cholesky_ex(precision)
        if bool(failed):
            self._refuse_saddle(max(1, int((torch.linalg.eigvalsh(precision) <= 0).sum())))
        # With P = L L', the rows of z L^-1 have the covariance P^-1.
        unit = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
        self.scale = torch.linalg.solve_triangular(factor, unit, upper=False).to(mode.dtype)

    def _refuse_saddle(self, directions: int) -> None:
        if directions:
            raise BnnvizError(
                f"At the mode that was found U does not rise in {directions} of {self.target.dim} directions, so there"
                " is no normal approximation there; raise mode_steps, or choose another sampler.",
                "mode_steps",
            )

    @property
    def examples_per_step(self) -> int:
        """Gradients of single rows that a draw is charged for: none."""
        return 0

    def kernel(self, state: State, pre_drawn: Any) -> tuple[State, Info]:
        """Make a draw for every chain."""
        z = self.rng.normal((len(state.x), len(self.scale)), state.x.dtype)
        away = z * self.scale if self.scale.ndim == 1 else z @ self.scale
        first, last, _ = self._part(self.target).indices(self.target.dim)
        away = torch.nn.functional.pad(away, (first, self.target.dim - last))
        after, failed = self.moved(state, torch.isfinite(away).all(1), x=self.mode + away)
        return after, Info(length(away), failed)

    def resume(self, state: State, moved: bool = False) -> State:
        """Return the state; the mode of a target that has moved was found before."""
        return state

    def caption(self, info: Info, chain: int) -> str:
        """Say where a draw is."""
        return f"a draw of the normal law around the mode, {float(info.distance[chain]):.3g} away from it."

    def told_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return how far draws are from the mode."""
        return [["Distance of draws to the mode", f"{means['distance']:.3g}", ""]]

    def told_words(self, means: dict[str, float]) -> str:
        """Return how far draws are from the mode."""
        return f"each an independent draw, on average {means['distance']:.3g} from the mode"

    def rows(self, state: State) -> list[list[str]]:
        """Return the sds."""
        sd = self.scale if self.scale.ndim == 1 else self.scale.square().sum(0).sqrt()
        return [["Sd of the weights, smallest to largest", f"{float(sd.min()):.2g} to {float(sd.max()):.2g}", ""]]

    def adopt(self, other: Laplace) -> None:
        """Take over the mode and the curvature."""
        super().adopt(other)
        self.mode, self.scale = other.mode, other.scale

    def save(self, state: State) -> dict[str, Any]:
        """Return the mode and the curvature, too."""
        return super().save(state) | {"mode": self.mode, "scale": self.scale}

    def load(self, saved: dict[str, Any], rng: torch.Generator) -> State:
        """Return the saved state."""
        self.mode, self.scale = (saved[name].to(self.target.device) for name in ("mode", "scale"))
        return super().load(saved, rng)
