r"""Sample by the Boomerang sampler.

Relative to a Gaussian reference $N(x_*, \Sigma)$, here N(x*, S) and in texts N(w*, S), the target is
$\pi(x) \propto e^{-E(x)} N(x; x_*, \Sigma)$, with velocity $v \sim N(0, \Sigma)$; with g the gradient of E at x:

$$\begin{aligned}
  \text{flow} &: \quad x_t = x_* + (x - x_*) \cos t + v \sin t, \qquad v_t = v \cos t - (x - x_*) \sin t \\
  \text{rate} &: \quad \lambda(x, v) = \max(0, \langle v, g \rangle) \\
  \text{bounce} &: \quad R_x v = v - 2 \frac{\langle g, v \rangle}{\langle g, \Sigma g \rangle}\, \Sigma g \\
  \text{refreshment} &: \quad v \sim N(0, \Sigma) \quad \text{at rate } \lambda_r
  \end{aligned}$$

The flow keeps $r^2 = (x - x_*)^\top \Sigma^{-1} (x - x_*) + v^\top \Sigma^{-1} v$, and along it
$\frac{d}{dt} \langle v, g \rangle = v^\top (\nabla^2 E) v - \langle x - x_*, g \rangle$.

``reference="exact"`` takes $E(x) = U(x) - \frac{1}{2} (x - x_*)^\top \Sigma^{-1} (x - x_*)$, so that the target
is $e^{-U}$. ``reference="from_prior"`` does so with the prior as the reference, so that E is the negative log
likelihood. ``reference="prior"`` takes the negative log likelihood as E, but keeps the reference at the mode, which
replaces the prior and changes the target.

Source: Bierkens, Grazzi, Kamatani and Roberts 2020, doi:10.48550/arXiv.2006.13777; for networks, Goan, Perrin,
Mengersen and Fookes 2023, doi:10.48550/arXiv.2302.08724, who use ``"prior"``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message, Remedy
from bnnviz.samplers.base import REGISTRY, preset
from bnnviz.samplers.baselines import newton
from bnnviz.samplers.mcmc.metric import WindowSums
from bnnviz.samplers.pdmp.base import ALGORITHM_2, PDMP, as_in_the_paper, capped
from bnnviz.samplers.pdmp.dynamics import Adaptation, PlanarFlow, State
from bnnviz.samplers.pdmp.scaling.preconditioner import DENSE, Preconditioner
from bnnviz.samplers.pdmp.scaling.reference import GaussianReference
from bnnviz.samplers.pdmp.text import BoomerangText
from bnnviz.samplers.pdmp.warmup import PathSums
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target

_PUBLISHED = {"reference": "prior", "curvature": "published", "learn_reference": False, "start": "one_mode"}
_ROUNDING = 1e-5  # of the exact bound: in single precision a rate may slightly exceed it


@REGISTRY.add
class Boomerang(PDMP):
    """Boomerang sampler: elliptical paths around a Gaussian reference N(w*, S); bounces at rate max(0, v . grad E).

    x* is a mode, one for each chain on networks. S^-1 is the Gauss-Newton diagonal of the negative log likelihood there
    (for a density, the diagonal of its Hessian), plus the prior's precision with ``reference="exact"``. With "prior" it
    is at least the prior's precision, because S would diverge for weights that the data do not determine. With
    "from_prior", x* is 0 and S the prior's covariance.
    """

    registered = "boomerang"
    title = "Boomerang"
    text = BoomerangText
    needs_mode = True
    curved = True
    # On a quadratic E the rate is a wave of period pi; a cell must not skip its maximum.
    widest_cell = 0.5
    terms_are_rate = False
    late_events = "the posterior is biased towards the reference N(w*, S)"

    reference = settings.Choice(
        "exact",
        objects=["exact", "from_prior", "prior"],
        doc="exact: the target is the posterior, and the reference is based on the curvature at the mode. from_prior:"
        " the target is the posterior, and the reference is the prior, centred at 0. prior: the reference at the mode"
        " replaces the prior, as in the paper.",
    )
    curvature = settings.Choice(
        "fisher",
        objects=["fisher", "hessian", "published"],
        when={"reference": ["exact", "prior"]},
        doc="S^-1 at the mode. fisher: Gauss-Newton diagonal of a network, or diagonal of the Hessian of a density."
        " hessian: diagonal of the Hessian, as in equation 5 of the corrected paper; Hutchinson's estimate for large"
        " targets. published: row sums of the Hessian, as in the first edition and in the code of the authors.",
    )
    gamma = settings.Number(
        1.0,
        bounds=(1e-3, 1000.0),
        scale="log",
        when={"reference": ["exact", "prior"]},
        doc="Factor of the covariance S of the reference (500 for the toys and 0.001 for CIFAR-10 in the paper).",
    )

    presets: ClassVar[list[dict[str, Any]]] = [
        *as_in_the_paper(
            "Algorithm 2 with alpha 1 and R 2, draws at events, one batch held between events, and the reference with"
            " the diagonal of the Hessian instead of the prior; for networks, which have a prior.",
            **_PUBLISHED | {"curvature": "hessian"},
        ),
        preset(
            "published",
            "As first published",
            "As in the paper, with the row sums of the Hessian, which the corrigendum replaces by its diagonal.",
            **ALGORITHM_2 | _PUBLISHED,
        ),
        capped("Ten proposals", "As first published, with a bounce at the tenth proposal.", **_PUBLISHED),
        preset(
            "thinning",
            "The paper's event times, on a density",
            "Algorithm 2 as in the paper, with a reference that preserves the target.",
            **ALGORITHM_2,
        ),
    ]

    learn_reference = settings.Boolean(
        False,
        label="Learn the reference",
        when={"reference": ["exact"]},
        doc="Learn centre and covariance of the reference from positions and gradients along the path, in four warm-up"
        f" rounds, each with twice the events of the previous one. Densities of up to {DENSE} dimensions get a full"
        " covariance. The initial reference is at the mode, and gamma affects only this initial reference. For custom"
        " functions the reference is always learned.",
    )
    adapt_events = settings.Integer(
        80,
        bounds=(40, 1_000_000),
        when={"learn_reference": [True]},
        doc="Number of events in the first round, summed over chains.",
    )

    def check(self, target: Target) -> None:
        """Raise if the reference involves a prior and the target has no prior."""
        super().check(target)
        if self.reference != "exact" and target.prior_precision is None:
            what = "makes the prior the reference" if self._is_prior else "replaces the prior by the reference"
            raise BnnvizError(
                f'reference="{self.reference}" {what}, but this target has no prior; use reference="exact".',
                "reference",
            )

    @property
    def _is_prior(self) -> bool:
        """Whether the reference is the prior."""
        return self.reference == "from_prior"

    @property
    def _keeps_target(self) -> bool:
        """Whether the reference preserves the target."""
        return self.reference != "prior"

    def set_mode(self, mode: Tensor | None) -> None:
        """Put the reference at the mode (dim,)."""
        super().set_mode(mode)
        self._mode = mode
        vars(self).pop("_at_mode", None)

    @cached_property
    def _at_mode(self) -> tuple[Tensor, int]:
        """The diagonal of S^-1 from the curvature at the mode, and the number of entries that were too small."""
        return self._precision_at(self._mode)

    def _precision_at(self, mode: Tensor) -> tuple[Tensor, int]:
        """Return the diagonal of S^-1 (dim,) from the curvature at a mode, and the number of entries too small."""
        prior = self.target.prior_precision or 0.0
        if self._is_prior:
            return torch.full_like(mode, prior), 0
        curvatures = {"hessian": self.target.hessian_diagonal, "published": self.target.hessian_row_sums}
        diagonal = curvatures.get(self.curvature, self.target.curvature_diagonal)(mode)
        if not torch.isfinite(diagonal).all():
            raise BnnvizError("The curvature at the mode is not finite. Use a different start or precision.", "start")
        precision = diagonal + prior if self.reference == "exact" else diagonal
        floor = prior if prior else 1e-3 * float(diagonal.abs().max().clamp_min(1e-6))
        return precision.clamp_min(floor) / self.gamma, int((precision < floor).sum())

    def remarks(self) -> list[Message]:
        """Return notes on unusable parts of the reference, and on a reference away from a mode."""
        place = newton.place(self.target, self._mode) if self.reference == "prior" else None
        found = []
        if place is not None and not place.is_mode:
            where = "a saddle" if place.sinking else f"about {place.away:.2g} posterior standard deviations from a mode"
            found.append(Message("reference_not_at_mode", Remedy("raise mode_steps"), where=where))
        floored = self._at_mode[1]
        if floored:
            learned = "; the warm-up learns them again" if self.rounds else ""
            found.append(Message("floored_precision", count=floored, dim=self.target.dim, learned=learned))
        return found

    def first_scaling(self) -> GaussianReference:
        """Return the reference at the mode, or the prior."""
        centre = torch.zeros_like(self._mode) if self._is_prior else self._mode
        return GaussianReference(centre, self._at_mode[0])

    def scaling_after(self, adaptation: Adaptation, moved: bool) -> GaussianReference:
        """Move the reference to the mode of a changed target; a learned spread is kept."""
        if not moved:
            return adaptation.scaling
        if self.rounds and not adaptation.rounds_left:
            return adaptation.scaling._replace(centre=self._mode.expand_as(adaptation.scaling.centre))
        return self.first_scaling()

    def _has_references(self, target: Target) -> bool:
        """Return whether each chain has its own reference, at the mode of a network where it starts."""
        own = self.start in ("auto", "mode") and target.start_at_mode
        return own and self.reference == "exact" and not self.control_variates

    def starts_at_mode(self, target: Target) -> bool:
        """Return whether chains start at modes: far from its reference a chain only circles around it."""
        return self.start != "random"

    def starts_together(self, target: Target) -> bool:
        """Return whether all chains start at one mode, as on networks with a shared reference."""
        shared = target.start_at_mode and not self._has_references(target) and not self._is_prior
        return self.start == "one_mode" or shared

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the state at path time zero; on networks with one reference per chain."""
        state = super().init(x0, rng)
        if not self._has_references(self.target):
            return state
        references = GaussianReference(x0, torch.stack([self._precision_at(x)[0] for x in x0]))
        # Rotating by zero around another centre would move the position by rounding.
        return self.rescaled(rng, state, references, self.rounds)._replace(x=x0)

    @property
    def learns_from_points(self) -> bool:
        """Whether the reference is learned; one that replaces the prior is fixed."""
        return (self.learn_reference or self.scales_are_unknown) and self.reference == "exact"

    @property
    def dense(self) -> bool:
        """Whether a learned reference has correlations; not on networks, whose references belong to single modes."""
        return self.target.dim <= DENSE and not self.target.start_at_mode

    @property
    def first_events(self) -> int:
        """Events of the first round, over all chains."""
        return self.adapt_events

    def preconditioner(self, scaling: GaussianReference, chains: int) -> Preconditioner:
        """Return L before a round, as a dense matrix if correlations are learned."""
        spread = scaling.spread
        if spread.factor is None and self.dense:
            return Preconditioner(spread.scale, spread.scale.diag(), spread.scale.reciprocal().diag())
        return spread

    def learned_scaling(
        self, sums: PathSums, points: WindowSums | None, before: GaussianReference
    ) -> GaussianReference:
        """Return the reference with the mean of the path and the spread estimated from positions and gradients."""
        if points is None:
            return before
        mean = sums.moments()[0] if before.centre.ndim == 1 else sums.means()
        return GaussianReference.of(
            mean.to(before.centre.dtype), self.preconditioner(before, len(sums.time)).learned(points)
        )

    def flow(self, x: Tensor, v: Tensor, t: Tensor, scaling: GaussianReference) -> tuple[Tensor, Tensor]:
        """Move along the ellipse around x*."""
        cos, sin = torch.cos(t)[:, None].to(x.dtype), torch.sin(t)[:, None].to(x.dtype)
        d = x - scaling.centre
        return scaling.centre + d * cos + v * sin, v * cos - d * sin

    def integrals(
        self, x: Tensor, v: Tensor, s0: Tensor, s1: Tensor, scaling: GaussianReference
    ) -> tuple[Tensor, Tensor]:
        """Return the integrals of the position and of its square along the ellipse."""
        centre = scaling.centre.double()
        d, v, span = x.double() - centre, v.double(), (s1 - s0)[:, None]
        middle, half = (s0 + s1)[:, None] / 2, span / 2
        # Differences of squares at the ends are written as products, which keeps precision for short spans.
        sin, cos = 2 * torch.cos(middle) * torch.sin(half), 2 * torch.sin(middle) * torch.sin(half)
        wave = torch.cos(2 * middle) * torch.sin(span) / 2
        first = d * sin + v * cos
        second = d * d * (span / 2 + wave) + v * v * (span / 2 - wave)
        second = second + d * v * torch.sin(2 * middle) * torch.sin(span)
        return centre * span + first, centre * centre * span + 2 * centre * first + second

    def planar_flow(self, project: Callable[[Tensor], np.ndarray], scaling: GaussianReference) -> PlanarFlow:
        """Return the flow in a plane: an ellipse around the projected x*."""
        centre = project(scaling.centre.reshape(-1, scaling.centre.shape[-1])[:1])

        def flow(x: np.ndarray, v: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            cos, sin, d = np.cos(t), np.sin(t), x - centre
            return centre + d * cos + v * sin, v * cos - d * sin

        return flow

    def speed(self, x: Tensor, v: Tensor, scaling: GaussianReference) -> Tensor:
        """Return the root of |x - x*|^2 + |v|^2, which bounds |v| along the ellipse and is constant on it."""
        return (torch.linalg.vector_norm(v, dim=-1).square() + (x - scaling.centre).square().sum(-1)).sqrt()

    def _energy_gradient(self, x: Tensor, g: Tensor, scaling: GaussianReference) -> Tensor:
        """Return the gradient of E from that of U."""
        if self._keeps_target:
            return g - scaling.pull(x - scaling.centre)
        return g - self.target.prior_precision * x

    def rate(self, x: Tensor, v: Tensor, g: Tensor, scaling: GaussianReference) -> Tensor:
        """Return v . grad E."""
        return (v * self._energy_gradient(x, g, scaling)).sum(-1)

    def rate_slope(self, x: Tensor, v: Tensor, g: Tensor, curvature: Tensor, scaling: GaussianReference) -> Tensor:
        """Return v' Hess E v - (x - x*) . grad E, since the acceleration is -(x - x*)."""
        taken = scaling.pull(v) if self._keeps_target else self.target.prior_precision * v
        pull = ((x - scaling.centre) * self._energy_gradient(x, g, scaling)).sum(-1)
        return curvature - (taken * v).sum(-1) - pull

    def reflect(self, rng: RandomNumbers, x: Tensor, v: Tensor, g: Tensor, scaling: GaussianReference) -> Tensor:
        """Return v - 2 (g . v) / (g' S g) S g with g = grad E, which keeps v' S^-1 v."""
        g = self._energy_gradient(x, g, scaling)
        scaled = scaling.spread_of(g)
        along = (g * v).sum(-1, keepdim=True) / (g * scaled).sum(-1, keepdim=True).clamp_min(1e-30)
        return v - 2 * along * scaled

    def draw_velocity(self, rng: RandomNumbers, like: Tensor, scaling: GaussianReference) -> Tensor:
        """Draw from N(0, S)."""
        return scaling.drawn(rng.normal(like.shape, like.dtype))

    def mean_rate(self, x: Tensor, g: Tensor, scaling: GaussianReference) -> Tensor:
        """Return sqrt(g' S g) / sqrt(2 pi) with g = grad E."""
        g = self._energy_gradient(x, g, scaling)
        return (g * scaling.spread_of(g)).sum(-1).sqrt() / math.sqrt(2 * math.pi)

    def gaussian_terms(
        self, x: Tensor, v: Tensor, mean: Tensor, precision: Tensor, scaling: GaussianReference
    ) -> tuple[Tensor, Tensor]:
        """Return r^2 |L' (P - S^-1) L| / 2 + r |L' grad E(x*)|, S = L L', a bound that changes at refreshments."""
        d = x - scaling.centre
        r2 = (d * scaling.pull(d) + v * scaling.pull(v)).sum(-1, keepdim=True).double()
        curvature, push = _bound_constants(mean, precision, scaling.centre, scaling.precision, scaling.factor)
        height = (1 + _ROUNDING) * (r2 * curvature / 2 + r2.sqrt() * push)
        return height, torch.zeros_like(height)

    def tempered_target(self, x: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Return U and its gradient, with the reference instead of the prior for ``reference="prior"``."""
        potential, g = super().tempered_target(x, state)
        if self._keeps_target:
            return potential, g
        scaling, prior = state.adaptation.scaling, self.target.prior_precision
        d = x - scaling.centre
        pull = scaling.pull(d)
        return potential + ((d * pull).sum(-1) - prior * x.square().sum(-1)) / 2, g + pull - prior * x


@lru_cache(maxsize=8)
def _bound_constants(
    mean: Tensor, of_target: Tensor, centre: Tensor, precision: Tensor, factor: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return |L' (P - S^-1) L| and |L' grad E(x*)|, by the tensors' identity."""
    root = torch.diag(precision.double().rsqrt()) if factor is None else factor.double()
    m = root.T @ of_target.double() @ root - torch.eye(len(root), dtype=root.dtype, device=root.device)
    push = root.T @ (of_target.double() @ (centre - mean).double())
    return torch.linalg.matrix_norm(m, 2), push.norm()
