r"""Adapt populations of proposals: adaptive importance sampling; a step is one phase of an iteration.

A chain is a proposal $N(\mu_m, \Sigma_m)$, m = 1, ..., M. For the target $\pi = e^{-U}$ iteration t has five phases:

1. *draw*: $\theta_{m,k} \sim q_m = N(\mu_m, \Sigma_m)$, k = 1, ..., K (equation 10).
2. *weigh*: $w_{m,k} = \pi(\theta_{m,k}) \big/ \frac1M \sum_i q_i(\theta_{m,k})$ (11), the deterministic mixture.
3. *resample*: $\tilde\mu_m$ is one of the draws of proposal m, with probabilities proportional to the weights.
4. *adapt*: $\Sigma_m \leftarrow (1 - \beta) \Sigma_m + \beta (1 - \eta_t) \hat\Sigma_m
   + \beta \eta_t \tilde\Sigma_m$ (13), the covariances of the draws with their weights and with clipped weights,
   $\eta_t = 1 / t$.
5. *move*: $\mu_m \leftarrow \tilde\mu_m + \gamma_m \Sigma_m \nabla \log \pi(\tilde\mu_m)$ (12), with
   $\gamma_m$ halved from 1 until U falls.

With ``least_ess``, steps 3 and 4 use weights $w^\tau$ with the largest $\tau \le 1$ for which a proposal's draws reach
that ESS; estimates use $w$. With ``covariance_from="curvature"``, step 4 is
$\Sigma_m = (\nabla^2 U(\tilde\mu_m))^{-1}$ if that is positive definite.

The draws form no Markov chain: weighted sums over them estimate integrals of $e^{-U}$.

References: Huang, Chouzenoux, Elvira and Pesquet 2023, Algorithm 1, doi:10.1016/j.jfranklin.2023.08.044; the mixture in
the weights: Elvira, Martino, Luengo and Bugallo 2017, doi:10.1016/j.sigpro.2016.07.012; tempered weights: Koblents and
Miguez 2015, doi:10.1007/s11222-013-9440-2; covariances of the
target's curvature (SL-PMC): Elvira and Chouzenoux 2019, doi:10.1109/ICASSP.2019.8682284.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.messages import Message
from bnnviz.samplers.base import Sampler, Traits, counters
from bnnviz.samplers.importance.draw_collector import PopulationDrawCollector, PopulationStats, PopulationTrace
from bnnviz.samplers.importance.mixture import Diagonal, Full
from bnnviz.samplers.importance.text import WeightsText
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import choose
from bnnviz.targets import Target

DRAW, WEIGH, RESAMPLE, ADAPT, MOVE = range(5)
PHASES = ("draw", "weigh", "resample", "adapt", "move")
_AT_ONCE = 256  # points per evaluation of U
_BLOWN_UP = 60  # halvings of a gradient step without a limit
_NETWORK_SD, _DENSITY_SD = 0.1, 1.0
_BISECTIONS = 40  # for the exponent of tempered weights


class State(NamedTuple):
    """State of all proposals between two phases."""

    x: Tensor  # (proposals, dim): Means
    # (proposals, dim, dim) or (proposals, dim): Lower Cholesky factors of the covariances, or standard deviations
    factor: Tensor
    origin: Tensor  # (proposals, dim): Means used for the last draws
    draws: Tensor  # (proposals, draws, dim)
    logs: Tensor  # (proposals, draws), float64: Log weights; -inf if U is not finite
    # (proposals,), int64: Index (proposal * draws + draw) of each proposal's survivor; -1 without a weighted draw
    chosen: Tensor
    landed: Tensor  # (proposals, dim): Start of the gradient step
    # (proposals, dim, dim) or (proposals, dim): With ``variant="reference-code"`` the running covariance estimate,
    # which may be indefinite; else (proposals, 0)
    estimate: Tensor
    halvings: Tensor  # (proposals,), int64: Of the last gradient step; -1 if U did not fall at any length
    phase: Tensor  # (), int64: The next phase, 0 to 4
    count: Tensor  # (proposals,), float64: Completed iterations
    alive: Tensor  # bool: False for a proposal whose mean met a non-finite value


class Info(NamedTuple):
    """Info of one phase."""

    phase: int
    failed: Tensor  # (proposals,), bool
    examples: int = 0  # Data rows of evaluations of U or its gradient, over all proposals
    weightless: int = 0  # Draws with a non-finite U
    lost: int = 0  # Proposals without a weighted draw, which keep their means
    fallbacks: int = 0  # Covariances that could not be factorised and are kept
    # (proposals,), bool: Proposals with a draw where U is minus infinity; None in other phases
    infinite: Tensor | None = None


class Population(Sampler):
    """Base of adaptive importance samplers with normal proposals; a subclass chooses the form of the covariances."""

    traits = Traits(
        exact=False,  # without their weights
        weighted=True,
        weighed_by="target / mixture",
        tunes=False,
        emits=frozenset({"population", "gauge"}),
    )
    compiles = False
    text = WeightsText
    covariance: ClassVar[type[Full | Diagonal]] = Full

    draws_each = settings.Integer(
        100,
        bounds=(1, 10_000),
        scale="log",
        label="Draws of each",
        doc="Number of draws per proposal and iteration, K.",
    )
    sigma0 = settings.Number(
        None,
        bounds=(1e-6, 100.0),
        scale="log",
        allow_None=True,
        empty="1, on a network 0.1",
        doc="Standard deviation of the initial proposals in every coordinate.",
    )
    gradient = settings.Boolean(
        True, live=True, doc="Update means by gradient steps. Off: PMCnet-gradfree, or DM-PMC if both are off."
    )
    adapt_covariance = settings.Boolean(
        True,
        live=True,
        label="Adapt covariances",
        doc="Adapt covariances to the weighted draws. Off: PMCnet-covfree, or DM-PMC if both are off.",
    )
    beta = settings.Number(
        0.5, bounds=(0.0, 1.0), live=True, doc="Weight of the new estimate of a covariance (equation 13 of the paper)."
    )
    least_ess = settings.Number(
        None,
        bounds=(0.0, 1.0),
        step=0.01,
        live=True,
        allow_None=True,
        empty="untempered weights",
        label="Minimum ESS",
        doc="Minimum ESS for the adaptation, relative to the number of draws of a proposal. Weights are tempered to"
        " reach it; estimates use the original weights. Empty: as in the paper.",
    )
    most_halvings = settings.Integer(
        20, bounds=(0, _BLOWN_UP), live=True, doc="Maximum number of halvings of a gradient step until U decreases."
    )
    variant = settings.Choice(
        "paper",
        objects=["paper", "reference-code"],
        doc="paper: Algorithm 1 as printed. reference-code: resampling, covariances and step sizes of the authors' code"
        " (commit 7325446, PMCnet_algo.py): at times all proposals resample jointly, and each takes the covariance of"
        " its draw's proposal; the running estimate starts without sigma0, and the last covariance is kept if the"
        " estimate is not positive definite; eta is 1 / (t // M + 1), t from 0; halvings are unlimited.",
    )
    together_every = settings.Integer(
        5,
        bounds=(1, 1000),
        when={"variant": ["reference-code"]},
        doc="Number of iterations between joint resampling steps. The script of the authors for Ionosphere uses 2.",
    )
    start = settings.Choice(
        "auto",
        objects=["auto", "mode", "random"],
        doc="Initial means. mode: the mode found by Adam for each proposal. auto: mode for networks, random points for"
        " densities.",
    )
    mode_steps = settings.Integer(3000, bounds=(1, 100_000), doc="Number of Adam steps for finding a mode.")

    @property
    def width(self) -> int:
        """Approximate number of values that a state stores per proposal and coordinate, without the factor."""
        return self.draws_each // 3 + 4

    @property
    def gradients_per_step(self) -> int:
        """Maximum number of data rows per phase and proposal: for the draws, or for a gradient step."""
        return self.target.examples * max(self.draws_each, self.most_halvings + 3)

    def gradient_cost(self, step_batch: StepBatch, counted: Any) -> int:
        """Return the data rows of all evaluations; an evaluation of U counts as a gradient."""
        return sum(info.examples for info in step_batch.infos)

    def check(self, target: Target) -> None:
        """Raise if the covariances need too much memory."""
        self.covariance.check(target.dim)

    @property
    def first_sd(self) -> float:
        """Standard deviation of the first proposals."""
        if self.sigma0 is not None:
            return self.sigma0
        return _NETWORK_SD if self.target.start_at_mode else _DENSITY_SD

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the proposals around their initial positions (proposals, dim)."""
        number, dim = x0.shape
        where = {"device": x0.device}
        none = torch.full((number,), -1, dtype=torch.int64, **where)
        count, alive = counters(x0)
        factor = self.covariance.first(x0, self.first_sd)
        kept = self.covariance.squared(factor) if self.variant == "reference-code" else x0[:, :0]
        return State(
            x=x0,
            factor=factor,
            estimate=torch.zeros_like(kept),
            origin=x0,
            draws=x0[:, None].expand(number, self.draws_each, dim).clone(),
            logs=torch.full((number, self.draws_each), -math.inf, dtype=torch.float64, **where),
            chosen=none,
            landed=x0,
            halvings=none.clone(),
            phase=torch.zeros((), dtype=torch.int64),
            count=count,
            alive=alive,
        )

    def kernel(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Perform one phase."""
        phase = (self._draw, self._weigh, self._resample, self._adapt, self._move)[int(state.phase)]
        made, info = phase(rng, state)
        return made._replace(phase=(state.phase + 1) % len(PHASES)), info

    # ---- the phases

    def _draw(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Draw K points from each proposal (equation 10)."""
        z = rng.normal(state.draws.shape, state.x.dtype)
        draws = state.x[:, None] + self.covariance.scaled(state.factor, z)
        return state._replace(origin=state.x, draws=draws), _info(DRAW, state)

    def _weigh(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Weight every draw by the target over the mixture of all proposals (equation 11)."""
        points = state.draws.flatten(0, 1)
        potential = self._potential(points).double()
        mixture = self.covariance.log_mixture(points, state.origin, state.factor)
        logs = (-potential - mixture).view(state.logs.shape)
        finite = torch.isfinite(logs)
        logs = torch.where(finite, logs, -math.inf)
        lost = int((~finite.any(1)).sum())
        examples = self.target.examples * len(points)
        infinite = (potential == -torch.inf).view(finite.shape).any(1)
        counts = {"examples": examples, "weightless": int((~finite).sum()), "lost": lost, "infinite": infinite}
        return state._replace(logs=logs), _info(WEIGH, state)._replace(**counts)

    def _resample(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Select one surviving draw per proposal, with probabilities proportional to the weights."""
        u = rng.uniform((len(state.x),), torch.float64)
        together = self.variant == "reference-code" and (int(state.count.max()) + 1) % self.together_every == 0
        logs = self._tempered(state.logs.flatten()[None] if together else state.logs)
        has_weight = torch.isfinite(logs).any(1).expand(len(state.x))
        shares = torch.softmax(torch.where(has_weight[: len(logs), None], logs, 0.0), 1).cumsum(1)
        place = torch.searchsorted(shares.expand(len(u), -1).contiguous(), u[:, None] * shares[:, -1:])[:, 0]
        place = place.clamp_max(logs.shape[1] - 1)
        if not together:
            place = place + torch.arange(len(u), device=u.device) * logs.shape[1]
        chosen = torch.where(has_weight, place, -1)
        survivors = state.draws.flatten(0, 1)[place]
        x = torch.where(has_weight[:, None], survivors, state.x)
        return state._replace(x=x, landed=x, chosen=chosen), _info(RESAMPLE, state)

    def _adapt(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Update the covariances by those of the draws with plain and with clipped weights (equation 13)."""
        usable = torch.isfinite(state.logs).any(1)
        if not self.adapt_covariance or self.draws_each < 2:
            return state, _info(ADAPT, state)
        # eta of equation 13, and the rank, from 1, of the weight to which larger ones are clipped
        count, root = int(state.count.max()), math.sqrt(self.draws_each)
        eta, rank = 1 / (count + 1), max(1, int(root))
        if self.variant == "reference-code":
            eta, rank = 1 / (count // len(state.x) + 1), math.ceil(root) + 1
        logs = self._tempered(torch.where(usable[:, None], state.logs, 0.0))
        weights = torch.softmax(logs, 1).to(state.x.dtype)
        clipped = clip_largest(weights, rank)
        old, previous = 1 - self.beta, state.factor
        if self.variant == "reference-code":
            own = torch.arange(len(usable), device=usable.device)
            parents = torch.where(state.chosen < 0, own, state.chosen // self.draws_each)
            old = 0.0 if count == 0 else old
            before, previous = state.estimate[parents], state.factor[parents]
        else:
            before = self.covariance.squared(state.factor)
        parts = [(1 - old) * (1 - eta), (1 - old) * eta]
        total = self.covariance.mixed(old * before, state.draws, [weights, clipped], parts)
        factor, sound = self.covariance.factorised(total)
        if self.variant == "reference-code":
            sound = sound & ~self.covariance.singular(total)
        made = state._replace(factor=choose(usable & sound, factor, previous))
        if self.variant == "reference-code":
            made = made._replace(estimate=choose(usable, total, before))
        return made, _info(ADAPT, state)._replace(fallbacks=int((usable & ~sound).sum()))

    def _tempered(self, logs: Tensor) -> Tensor:
        """Return the log weights (proposals, draws) for adaptation, tempered if ``least_ess`` is set."""
        return logs if self.least_ess is None else temper(logs, self.least_ess)

    def _move(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Take a Langevin step without noise from each survivor (equation 12)."""
        x, halvings, examples = state.x, torch.full_like(state.halvings, -1), 0
        if self.gradient:
            x, halvings, examples = self._climb(state)
        failed = state.alive & ~torch.isfinite(x).all(1)
        alive = state.alive & ~failed
        x = torch.where(alive[:, None], x, state.origin)
        made = state._replace(x=x, halvings=halvings, count=state.count + 1, alive=alive)
        return made, Info(MOVE, failed, examples)

    def _climb(self, state: State) -> tuple[Tensor, Tensor, int]:
        """Return the means after a step along the gradient of all rows, the halvings, and the rows used."""
        potential, g = self.target.gradient(state.x)
        ahead = -self.covariance.applied(state.factor, g)
        x, halvings, tries = self.shortened(state.x, ahead, potential, self._potential)
        return x, halvings, (len(state.x) + tries) * self.target.examples

    def shortened(self, x: Tensor, ahead: Tensor, potential: Tensor, of: Any) -> tuple[Tensor, Tensor, int]:
        """Halve the steps ``ahead`` until U falls; return ends, halvings (-1 if it never does) and evaluations of U."""
        x, halvings = x.clone(), torch.full((len(x),), -1, dtype=torch.int64, device=x.device)
        most = _BLOWN_UP if self.variant == "reference-code" else self.most_halvings
        left, tries = torch.isfinite(ahead).all(1).nonzero()[:, 0], 0
        for halving in range(most + 1):
            if not len(left):
                break
            there = x[left] + 0.5**halving * ahead[left]
            tries += len(left)
            falls = of(there) < potential[left]
            x[left[falls]], halvings[left[falls]] = there[falls], halving
            left = left[~falls]
        return x, halvings, tries

    def _potential(self, points: Tensor) -> Tensor:
        """Return U (n,) of points (n, dim), computed in parts."""
        return torch.cat([self.target.potential(part) for part in torch.split(points, _AT_ONCE)])

    # ---- observers and changes

    def draw_collector(self, rng: RandomNumbers, state: State) -> PopulationDrawCollector:
        """Return a collector of draws from this state on."""
        return PopulationDrawCollector(state)

    def sampler_stats(self) -> PopulationStats:
        """Return counters at zero."""
        return PopulationStats()

    def infinite_density(self, step_batch: StepBatch) -> Tensor:
        """Return which proposals had a draw where U is minus infinity, (steps, proposals)."""
        none = torch.zeros_like(step_batch.infos[0].failed)
        return torch.stack([none if info.infinite is None else info.infinite for info in step_batch.infos])

    def tried(self, step_batch: StepBatch, step: int, chain: int) -> Tensor:
        """Return the draws (draws, dim) of a proposal."""
        return step_batch.state_after(step).draws[chain]

    def chain_trace(self) -> PopulationTrace:
        """Return an empty trace."""
        return PopulationTrace(self)

    def remarks(self) -> list[Message]:
        """Return notes on effects of K."""
        if self.draws_each == 1 and self.adapt_covariance:
            return [Message("fixed_covariances")]
        return []

    def resume(self, rng: RandomNumbers, state: State, moved: bool = False) -> State:
        """Return the state; after a change of target, draws are weighted again."""
        return state._replace(phase=torch.zeros_like(state.phase), x=state.x) if moved else state

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the proposals with other means (proposals, dim)."""
        return state._replace(x=x, landed=x, phase=torch.zeros_like(state.phase))


def _info(phase: int, state: State) -> Info:
    return Info(phase, torch.zeros_like(state.alive))


def temper(logs: Tensor, share: float) -> Tensor:
    """Return tau * logs (proposals, draws), with the largest tau <= 1 per row that reaches a share of the ESS."""
    known = torch.isfinite(logs)
    top = torch.where(known, logs, -math.inf).amax(1, keepdim=True)
    below = torch.where(known, logs - torch.where(torch.isfinite(top), top, 0.0), 0.0)
    least = (share * known.sum(1)).clamp_min(1.0)

    def enough(tau: Tensor) -> Tensor:
        weights = torch.where(known, torch.exp(tau[:, None] * below), 0.0)
        return weights.sum(1).square() >= least * weights.square().sum(1)

    low, high = torch.zeros_like(least), torch.ones_like(least)
    whole = enough(high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        fits = enough(middle)
        low, high = torch.where(fits, middle, low), torch.where(fits, high, middle)
    return torch.where(known, torch.where(whole, 1.0, low)[:, None] * below, -math.inf)


def clip_largest(weights: Tensor, place: int) -> Tensor:
    """Return normalised weights (proposals, draws), with larger ones clipped to the one of a given rank (from 1)."""
    limit = weights.topk(min(place, weights.shape[1]), dim=1).values[:, -1:]
    clipped = torch.minimum(weights, limit)
    return clipped / clipped.sum(1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
