"""Define the state of a piecewise deterministic sampler and the info of a step."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from bnnviz.samplers.mcmc.metric import WindowSums
from bnnviz.samplers.pdmp.bounds.capped import CappedState
from bnnviz.samplers.pdmp.bounds.exact import ExactState
from bnnviz.samplers.pdmp.bounds.grid import GridState
from bnnviz.samplers.pdmp.bounds.interpolated import InterpolatedState
from bnnviz.samplers.pdmp.bounds.raised import RaisedState
from bnnviz.samplers.pdmp.bounds.regression import RegressionState
from bnnviz.samplers.pdmp.scaling.preconditioner import Preconditioner
from bnnviz.samplers.pdmp.scaling.reference import GaussianReference
from bnnviz.samplers.pdmp.thinning import Piece
from bnnviz.samplers.pdmp.warmup import Energies, PathSums, RefreshCounts


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
    bound: InterpolatedState | CappedState | GridState | RaisedState | RegressionState | ExactState
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
