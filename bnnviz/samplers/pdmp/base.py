"""Define the base of the piecewise deterministic samplers: settings and observers.

A subclass defines the dynamics (`bnnviz.samplers.pdmp.dynamics`); the kernel is the event loop
(`bnnviz.samplers.pdmp.event_loop`). Initialisation and warm-up are in `bnnviz.samplers.pdmp.learning`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.samplers.base import Sampler, Traits, preset
from bnnviz.samplers.minibatch import MiniBatch, batch_size_setting, refuse_without_rows
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.pdmp.bounds import linear_losses
from bnnviz.samplers.pdmp.bounds.exact import Exact
from bnnviz.samplers.pdmp.bounds.grid import Grid, RaisedGrid
from bnnviz.samplers.pdmp.bounds.interpolated import Interpolated
from bnnviz.samplers.pdmp.bounds.regression import Regression
from bnnviz.samplers.pdmp.draw_collector import EventDrawCollector, PathDrawCollector, RatioStats
from bnnviz.samplers.pdmp.dynamics import Dynamics, State
from bnnviz.samplers.pdmp.event_loop import EventLoop
from bnnviz.samplers.pdmp.learning import PathLearner
from bnnviz.samplers.pdmp.text import ProcessText
from bnnviz.samplers.pdmp.thinning import Bound, is_event
from bnnviz.samplers.pdmp.trace.chain_trace import PathTrace
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target

_GRID = {"bound": ["grid"]}
_INTERPOLATED = {"bound": ["interpolated"]}
_BATCHES = {"batch_size": {"least": 1}}
_PATH_NUMBERS = 4096  # chains x dimensions up to which the path is integrated; more would slow a step down by 10%
_ROWS = 512  # draws per gradient evaluation


#: Algorithm 2 of Goan, Perrin, Mengersen and Fookes 2023; a batch is held between events.
ALGORITHM_2: dict[str, Any] = {
    "bound": "interpolated",
    "alpha": 1.0,
    "reject_above": 2.0,
    "horizon": 1000.0,
    "clip_points": False,
    "samples": "events",
    "batch": "event",
}


def as_in_the_paper(doc: str, **more: Any) -> list[dict[str, Any]]:
    """Return a sampler's presets: the correct bound, the paper's settings, and eq. 12 taken literally."""
    literal = (
        "Negative rates are clipped at zero before fitting the line. After a bounce the envelope is zero for a long"
        " time, and the posterior is many times too wide."
    )
    return [
        preset("exact", "Correct (grid bound)", "The default.", bound="grid"),
        preset("paper", "As in the paper", doc, **ALGORITHM_2 | more),
        preset("literal", "Wrong: points clipped at zero", literal, **ALGORITHM_2 | {"clip_points": True}),
    ]


def capped(title: str, doc: str, **more: Any) -> dict[str, Any]:
    """Return a preset with Algorithm 2 and a bounce at the tenth proposal, as in the code of docs/corrigendum.md."""
    return preset("capped", title, doc, **ALGORITHM_2 | {"most_proposals": 10} | more)


class PDMP(PathLearner, EventLoop, Dynamics, Sampler):
    """Base of the piecewise deterministic samplers: settings of event times, and the event loop."""

    traits = Traits(emits=frozenset({"events", "envelope", "path", "ratios"}))
    text = ProcessText
    # Longest cell of the grid bound, in path time: a process whose rate stays zero would double its cells forever.
    widest_cell: ClassVar[float] = 1e3
    late_events: ClassVar[str] = "the posterior is too wide"  # effect of late events

    refresh_rate = settings.Number(
        1.0,
        bounds=(0.0, 20.0),
        step=0.05,
        unit="1/time",
        live=True,
        doc="Rate per unit of path time at which the path takes a random new velocity (a refreshment). Without"
        " refreshment, the sampler is not ergodic on some targets.",
    )
    refresh_share = settings.Number(
        None,
        bounds=(0.01, 0.99),
        step=0.01,
        allow_None=True,
        label="Target share of refreshments",
        empty="refresh rate as set",
        doc="Proportion of events that are refreshments, to which the warm-up adapts the refreshment rate. For the"
        " Bouncy Particle, 0.78 is efficient on high-dimensional Gaussians. Empty: do not adapt the rate.",
    )
    bound = settings.Choice(
        "grid",
        objects=["grid", "interpolated", "regression", "exact"],
        live=True,
        doc="Envelope for thinning event times. grid: lines from rates and derivatives, raised if a rate exceeds them;"
        " accurate up to Monte Carlo error. interpolated: the line through the last two rates, as in the papers;"
        " cheaper, but not a strict bound. regression: a line regressed through the noisy rates of batches, raised by"
        " its predicted spread (Pakman and others 2017). exact: no approximation, on Gaussian targets; with batches and"
        " control variates, lines that bound the rate of every batch, on logistic regression.",
    )
    alpha = settings.Number(
        1.2,
        bounds=(0.5, 5.0),
        step=0.05,
        live=True,
        when=_INTERPOLATED,
        doc="Factor by which the envelope is multiplied (1 in the papers).",
    )
    horizon = settings.Number(
        None,
        bounds=(1e-4, 1000.0),
        scale="log",
        unit="time",
        live=True,
        when=_INTERPOLATED,
        allow_None=True,
        doc="Maximum time between two evaluations of the rate; empty: 0.3 of the mean time between events.",
    )
    t_init = settings.Number(
        1.0,
        bounds=(1e-4, 100.0),
        scale="log",
        unit="time",
        live=True,
        when=_INTERPOLATED,
        doc="Time of the first look-ahead after an event, limited by the horizon.",
    )
    reject_above = settings.Number(
        None,
        bounds=(1.0, 100.0),
        live=True,
        when=_INTERPOLATED,
        allow_None=True,
        label="Reject above (R)",
        empty="none",
        doc="Reject proposals whose rate exceeds the envelope by more than this factor (2 in the paper). This hides the"
        " largest violations. Empty: accept them.",
    )
    clip_points = settings.Boolean(
        False,
        live=True,
        when=_INTERPOLATED,
        doc="Clip negative rates at zero before fitting the line, as in equation 12, instead of clipping the line.",
    )
    sds_above = settings.Number(
        3.0,
        bounds=(0.0, 10.0),
        step=0.1,
        live=True,
        when={"bound": ["regression"]},
        label="Raised by (k)",
        unit="sd",
        doc="Number of predicted standard deviations by which the regression line is raised.",
    )
    most_proposals = settings.Integer(
        None,
        bounds=(1, 1000),
        live=True,
        when=_INTERPOLATED,
        allow_None=True,
        label="Maximum proposals",
        empty="unlimited",
        doc="Maximum number of proposals between two events. The last proposal is accepted unconditionally, as in the"
        " code of the authors (with 10), which is biased. Empty: unlimited.",
    )
    margin = settings.Number(
        0.1,
        bounds=(0.0, 5.0),
        step=0.05,
        live=True,
        when=_GRID,
        doc="Margin of the bound in an interval, relative to the deviation of the rate from a straight line.",
    )
    batch_size = batch_size_setting(
        "Number of random data rows per evaluation of the rate. Empty: all rows.", live=True
    )
    batch = settings.Choice(
        "proposal",
        objects=["proposal", "event"],
        live=True,
        when=_BATCHES,
        label="New batch at every",
        doc="proposal: draw a batch for every evaluation, which is exact if the envelope bounds the rates of all"
        " batches. event: keep the batch until the next event, as in the paper. The batch becomes part of the state,"
        " and the posterior is too wide.",
    )
    control_variates = settings.Boolean(
        False,
        when=_BATCHES,
        doc="Use control variates: subtract the batch gradient at the mode from each batch gradient and add the full"
        " gradient at the mode. This reduces the variance near the mode and increases it elsewhere, at twice the cost.",
    )
    samples = settings.Choice(
        "path",
        objects=["path", "events"],
        live=True,
        doc="Times of the draws. path: at equal time intervals along the path. events: at bounces and refreshments, as"
        " in the papers, which is biased toward regions with frequent events.",
    )
    spacing = settings.Number(
        None,
        bounds=(1e-4, 1000.0),
        scale="log",
        unit="time",
        allow_None=True,
        doc="Path time between draws. Empty: twice the mean time between events, estimated in the warm-up.",
    )
    start = settings.Choice(
        "auto",
        objects=["auto", "mode", "one_mode", "random"],
        doc="Initial positions. mode: the mode found by Adam for each chain. one_mode: the best of these modes for all"
        " chains. auto: mode for custom functions and for networks (at most 100 steps if noise or prior are learned,"
        " because the mode overfits), random points for other densities.",
    )
    mode_steps = settings.Integer(3000, bounds=(1, 100_000), doc="Number of Adam steps for finding a mode.")

    presets: ClassVar[list[dict[str, Any]]] = as_in_the_paper(
        "Algorithm 2 with alpha 1 and R 2, the line through signed rates, no horizon, draws at events, one batch held"
        " between events."
    )

    @property
    def needs_mode(self) -> bool:
        """Whether a mode is needed before the chains start."""
        return self.control_variates

    def starts_at_mode(self, target: Target) -> bool:
        """Return whether chains start at modes: straight lines take long from distant points."""
        return super().starts_at_mode(target) or (self.start == "auto" and not target.located)

    def check(self, target: Target) -> None:
        """Raise if the bound or the batches do not fit the target."""
        if self.bound == "exact" and self.batch_size is None and target.quadratic() is None:
            raise BnnvizError(
                'bound = "exact" needs a Gaussian target, whose event times have a closed form; use "grid".', "bound"
            )
        if target.jumps:
            raise BnnvizError(
                f"{self.title} follows the gradient of U, which does not show jumps of U as on this target (a sign,"
                " an argmax, a branch on a weight, a division by a value that can be 0); use HMC or NUTS.",
                "sampler",
            )
        refuse_without_rows(target, self.batch_size)
        if self.batch_size is None or self.bound != "exact":
            return
        # Otherwise no bound on the rates of all batches is known.
        if self.curved or not linear_losses.fits(target):
            raise BnnvizError(
                'bound = "exact" with batches needs logistic regression or another sum of losses of linear predictors,'
                ' and a process with straight paths; use "grid".',
                "bound",
            )
        if not self.control_variates:
            raise BnnvizError(
                'bound = "exact" with batches bounds the deviation of rows from their values at the mode; set'
                ' control_variates, or use "grid".',
                "bound",
            )

    def set_mode(self, mode: Tensor | None) -> None:
        """Choose the source of gradients, with control variates at the mode (dim,), and create the envelope."""
        anchor = mode if self.control_variates else None
        self.source = MiniBatch(self.target, self.batch_size, self.batch == "event", anchor)
        self.envelope = self._make_bound(anchor)

    def _make_bound(self, anchor: Tensor | None) -> Bound:
        if self.bound == "grid":
            return RaisedGrid(Grid(self.margin, self.widest_cell, self.source.noisy), self.speed)
        if self.bound == "exact" and self.batch_size is not None:
            lines = linear_losses.BatchLines.of(self.target, anchor)
            return Exact(lambda x, v, ref: lines.terms(self.directions(v, ref), x, v), certain=False)
        if self.bound == "exact":
            mean, precision = self.target.quadratic()
            return Exact(lambda x, v, ref: self.gaussian_terms(x, v, mean, precision, ref), self.terms_are_rate)
        if self.bound == "regression":
            return Regression(self.sds_above, self.speed)
        reject_above = float("inf") if self.reject_above is None else self.reject_above
        return Interpolated(self.alpha, self.t_init, reject_above, self.clip_points, self.most_proposals)

    @property
    def gradients_per_step(self) -> int:
        """Single-row gradients that a step is charged; the rate's derivative costs about one more."""
        second = min(self.batch_size or self.target.examples, self.target.examples)
        return self.source.examples + (second if self.envelope.needs_curvature else 0)

    # ---- observers

    def draw_collector(self, rng: RandomNumbers, state: State) -> PathDrawCollector | EventDrawCollector:
        """Return a collector of draws along the path or at its events."""
        if self.samples == "events":
            return EventDrawCollector(self, state)
        spacing = self.spacing
        if spacing is None:
            spacing = 2 * float(state.adaptation.mean_event_time[state.alive].mean())
        return PathDrawCollector(self, state, spacing)

    def sampler_stats(self) -> RatioStats:
        """Return counters at zero."""
        return RatioStats()

    def chain_trace(self) -> PathTrace:
        """Return an empty trace."""
        return PathTrace(self)

    def events_in(self, step_batch: StepBatch) -> Tensor:
        """Return the number of bounces and refreshments of each chain in a block (chains,)."""
        return is_event(step_batch.column("kind")).sum(0)

    def tried(self, step_batch: StepBatch, step: int, chain: int) -> Tensor:
        """Return the point (1, dim) of the path at which a step evaluated the rate."""
        state = step_batch.before[step]
        return self.flow(state.x, state.v, state.t, state.adaptation.scaling)[0][chain][None]

    def integrates(self, chains: int, dim: int) -> bool:
        """Return whether the path is integrated: only if that does not slow the sampler down."""
        return chains * dim <= _PATH_NUMBERS

    @property
    def weighs(self) -> bool:
        """Whether draws are taken at events with a known rate; with batches it is unknown."""
        return self.samples == "events" and self.batch_size is None

    def event_weights(self, x: Tensor, draw_collector: PathDrawCollector | EventDrawCollector) -> Tensor:
        r"""Return normalised weights (n,) that correct the bias of draws x (n, dim) at events.

        Bounces and refreshments together follow $\pi(x) (\lambda_r + \bar\lambda(x))$, with the rate averaged over the
        law of the velocity, so weights of its reciprocal recover pi (with the full data and without violations).
        """
        g = torch.cat([self.target.gradient(part)[1] for part in torch.split(x, _ROWS)])
        # Without refreshments no events occur at zero gradient, but rounding may put a draw there.
        mean_rate = self.mean_rate(x, g, draw_collector.scaling)
        rate = self.refresh_rate if self.refresh_share is None else draw_collector.refreshments
        weights = 1 / (rate + mean_rate).double().clamp_min(1e-12)
        return weights / weights.sum()
