r"""Describe the dynamics of a piecewise deterministic Markov process (PDMP).

Its state (x, v) follows a flow $\phi_t$ between events. Events come at rate $\lambda(x, v)$, and
refreshments at a constant rate $\lambda_r$. Its generator (Davis 1984, doi:10.1111/j.2517-6161.1984.tb01308.x) is

$$\mathcal{L} f(x, v) = \frac{d}{dt} f(\phi_t(x, v)) \Big|_{t=0}
  + \lambda(x, v)\, \bigl(f(x, R_x v) - f(x, v)\bigr)
  + \lambda_r \int \bigl(f(x, w) - f(x, v)\bigr)\, \psi(dw),$$

and flow, rate and reflection R are chosen so that $\pi(x) \psi(v)$, with $\pi = e^{-U}$, is invariant. For straight
lines, and a reflection that preserves $\psi$ and is its own inverse, this requires

$$\lambda(x, R_x v) - \lambda(x, v) = -\langle v, \nabla U(x) \rangle.$$

Source: Fearnhead, Bierkens, Pollock and Roberts 2018, doi:10.1214/18-STS648.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz.samplers.mcmc.metric import WindowSums
from bnnviz.samplers.pdmp.bounds.exact import ExactState
from bnnviz.samplers.pdmp.bounds.grid import GridState, RaisedState
from bnnviz.samplers.pdmp.bounds.interpolated import InterpolatedState
from bnnviz.samplers.pdmp.bounds.regression import RegressionState
from bnnviz.samplers.pdmp.scaling.preconditioner import Preconditioner
from bnnviz.samplers.pdmp.scaling.reference import GaussianReference
from bnnviz.samplers.pdmp.thinning import Piece
from bnnviz.samplers.pdmp.warmup import Energies, PathSums, RefreshCounts
from bnnviz.samplers.random import RandomNumbers


class Adaptation(NamedTuple):
    """Quantities learned in the warm-up."""

    mean_event_time: Tensor  # (chains,), float64: Running mean of the time between events
    num_events: Tensor  # (chains,), float64: Number of events in that mean, at most 50
    # GaussianReference or Preconditioner or Tensor or (): The scaling of the dynamics (`Dynamics`)
    scaling: GaussianReference | Preconditioner | Tensor | tuple[()]
    rounds_left: int  # Remaining warm-up rounds of the scaling
    sums: PathSums | None  # Path statistics of this round; None before its first step, and without a learned scaling
    # Positions and gradients in this round; None before the first, and if they are not used
    points: WindowSums | None
    refreshment: RefreshCounts
    energies: Energies  # Empty after the warm-up


class State(NamedTuple):
    """State of all chains; times count from the last event unless noted otherwise."""

    # (chains, dim): Position and velocity at the last event
    x: Tensor
    v: Tensor
    clock: Tensor  # (chains,), float64: Path time of the last event since the start
    s: Tensor  # Time up to which the path is certain
    refresh: Tensor  # Time of the next refreshment
    # The planned evaluation (`thinning.Plan`)
    t: Tensor
    kind: Tensor
    piece: Piece
    skipped: Piece
    # The bound's own state
    bound: InterpolatedState | GridState | RaisedState | RegressionState | ExactState
    alive: Tensor  # bool: False for a chain that met a non-finite value
    # (chains, size) or (): The rows that a chain holds between events; empty without a held batch
    batch: Tensor | tuple[()]
    adaptation: Adaptation


class Info(NamedTuple):
    """Info of one step for every chain, shape (chains,)."""

    kind: Tensor  # PROBE, REJECTED, BOUNCE, REFRESH, HORIZON or START (`bnnviz.samplers.pdmp.thinning`)
    # Time of the evaluation, signed rate, envelope, the uniform draw, positive rate / envelope
    t: Tensor
    rate: Tensor
    height: Tensor
    uniform: Tensor
    ratio: Tensor
    violated: Tensor  # bool: A proposal whose rate exceeded the envelope
    # The path became certain from s0 to s1, on the segment where the step began
    s0: Tensor
    s1: Tensor
    slope: Tensor  # Time derivative of the rate; nan if the bound does not need it
    potential: Tensor  # U at the evaluated point
    failed: Tensor  # bool: The chain met a non-finite value in this step


#: A preconditioner, the scales of sigma-BPS, the Gaussian of the Boomerang, or () without a scaling.
Scaling = Tensor | tuple[Any, ...]
PlanarFlow = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Dynamics:
    """Flow, rate, reflection and velocity law of a process, with a `Scaling`; by default it moves in straight lines."""

    curved: ClassVar[bool] = False  # the path between two events is a curve
    terms_are_rate: ClassVar[bool] = True  # `gaussian_terms` sum to the rate, not to an upper bound

    def scaling_of(self, scaling: Any, chains: Tensor) -> Scaling:
        """Return the scaling of the given chains."""
        each = isinstance(scaling, Preconditioner | GaussianReference)
        return scaling.of_chains(chains) if each else scaling

    def flow(self, x: Tensor, v: Tensor, t: Tensor, scaling: Any) -> tuple[Tensor, Tensor]:
        """Return position and velocity at time t (chains,) after (x, v)."""
        return x + v * t[:, None].to(x.dtype), v

    def integrals(self, x: Tensor, v: Tensor, s0: Tensor, s1: Tensor, scaling: Any) -> tuple[Tensor, Tensor]:
        """Return the integrals of the position and of its square from s0 to s1 (n,), both (n, dim) in float64."""
        x, v, span = x.double(), v.double(), (s1 - s0)[:, None]
        a, b = x + v * s0[:, None], x + v * s1[:, None]
        return span * (a + b) / 2, span * (a * a + a * b + b * b) / 3

    def planar_flow(self, project: Callable[[Tensor], np.ndarray], scaling: Any) -> PlanarFlow:
        """Return the flow of arrays (..., 2) for times (..., 1), in the plane of an affine projection."""
        return lambda x, v, t: (x + v * t, v)

    def speed(self, x: Tensor, v: Tensor, scaling: Any) -> Tensor:
        """Return the speed (chains,) of the path from (x, v), to which the spread of rates is proportional."""
        return torch.linalg.vector_norm(v, dim=-1)

    def rate(self, x: Tensor, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return the signed rate (chains,) at (x, v) from the gradient of U."""
        raise NotImplementedError

    def derivatives(self, source: Any, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient, and the curvature along v for `rate_slope`: v' H v."""
        return source.gradient_and_curvature(x, v)

    def rate_slope(self, x: Tensor, v: Tensor, g: Tensor, curvature: Tensor, scaling: Any) -> Tensor:
        """Return the time derivative of the signed rate from `derivatives`."""
        raise NotImplementedError

    def reflect(self, rng: RandomNumbers, x: Tensor, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return the velocity after a bounce."""
        raise NotImplementedError

    def rate_after(self, x: Tensor, v: Tensor, g: Tensor, rate: Tensor, scaling: Any) -> Tensor:
        """Return the signed rate right after a bounce to v, from the rate before it."""
        return -rate

    def draw_velocity(self, rng: RandomNumbers, like: Tensor, scaling: Any) -> Tensor:
        """Draw fresh velocities shaped like ``like`` from their invariant law."""
        raise NotImplementedError

    def mean_rate(self, x: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return the rate (n,) at x, averaged over the velocity's law, from the gradient of U."""
        raise NotImplementedError

    def directions(self, v: Tensor, scaling: Any) -> Tensor:
        """Return directions (chains, terms, dim) whose clipped products with the gradient sum to the rate, on lines."""
        raise NotImplementedError

    def gaussian_terms(
        self, x: Tensor, v: Tensor, mean: Tensor, precision: Tensor, scaling: Any
    ) -> tuple[Tensor, Tensor]:
        """Return heights and slopes (chains, terms) of the rate on a Gaussian target (`bounds.exact`)."""
        raise NotImplementedError
