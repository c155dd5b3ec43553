"""Hold what a piecewise deterministic sampler has between two steps, and what it says of a step."""

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
    """What the warm-up learns."""

    mean_event_time: Tensor  # (chains,), float64: Running mean of the time between events
    num_events: Tensor  # (chains,), float64: Number of events in that mean, 50 at most
    # GaussianReference or Preconditioner or Tensor or (): What the dynamics are relative to (`Dynamics`)
    scaling: GaussianReference | Preconditioner | Tensor | tuple[()]
    rounds_left: int  # Rounds of the warm-up in which the scaling is yet to be learned
    sums: PathSums | None  # Of the path in this round; None before its first step, and where no scaling is learned
    # Positions and gradients in this round; None before the first, and where nothing is learned from them
    points: WindowSums | None
    refreshment: RefreshCounts
    energies: Energies  # Empty after the warm-up


class State(NamedTuple):
    """All chains of a process; times are counted from the last event unless said otherwise."""

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
    alive: Tensor  # bool: False for a chain that met a value that is not finite
    # (chains, size) or (): The rows that a chain holds from one event to the next; empty where it holds none
    batch: Tensor | tuple[()]
    adaptation: Adaptation


class Info(NamedTuple):
    """What one step did, for every chain, shape (chains,)."""

    kind: Tensor  # PROBE, REJECTED, BOUNCE, REFRESH, HORIZON or START (`bnnviz.samplers.pdmp.thinning`)
    # Time of the evaluation, signed rate, envelope, the uniform draw, positive rate / envelope
    t: Tensor
    rate: Tensor
    height: Tensor
    uniform: Tensor
    ratio: Tensor
    violated: Tensor  # bool: A proposal whose rate exceeded the envelope
    # The path became certain from s0 to s1, on the segment that the step began on
    s0: Tensor
    s1: Tensor
    slope: Tensor  # Time derivative of the rate; nan where the bound does not ask for it
    potential: Tensor  # U at the evaluated point
    failed: Tensor  # bool: The chain met a value that is not finite in this step
