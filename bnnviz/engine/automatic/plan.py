"""Choose a sampler for a network by a short pilot: each candidate samples a part of the rows and predicts the others.

A candidate is a sampler that proposes how to spend a budget (`bnnviz.samplers.base.Sampler.proposal`). The pilot
measures the cost of a gradient, gives each candidate an equal share of a tenth of the time on 80% of the training
rows, and takes the one with the largest density of the other rows. A candidate within one standard error of the best
that precedes it in rank is preferred, because it profits from more time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bnnviz import samplers
from bnnviz.engine.drive import drive
from bnnviz.engine.evaluation.metrics import log_scale, network_draws
from bnnviz.engine.evaluation.predictive_distribution import log_densities
from bnnviz.engine.run.device import choose_device, computing_time
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.messages import Remedy
from bnnviz.samplers.budget import Budget, BudgetProposal
from bnnviz.specs.run import Spec
from bnnviz.targets import BNN

MINUTES = 0.25
CHAINS = 8
_PILOT = 0.12  # of the time
_VALIDATION, _MOST_VALIDATION = 0.2, 1000  # of the training rows
_FEWEST_ROWS = 20  # minimum rows for a pilot
_TIMED_S = 0.3  # for which gradients are timed
_STEPS_COST = 1.6  # cost of a sampler's step relative to its gradients, before any measurement
_SAFE = 0.85  # planned fraction of the time
_SLICE_S = 0.1
_ENOUGH = 500  # minimum useful number of gradients
_STRETCHES = (1, 2, 4, 8, 16)  # factors by which the time is exceeded if nothing fits


@dataclass(frozen=True, kw_only=True)
class SamplerPlan:
    """The chosen sampler and settings for a network."""

    sampler: str
    settings: dict[str, Any]
    chains: int
    warmup: int
    draws: int
    seconds: float
    sentence: str

    def applied(self, spec: Spec) -> Spec:
        """Return a spec with the plan's choices."""
        names = ("sampler", "settings", "chains", "warmup", "draws")
        return spec.replace(**{name: getattr(self, name) for name in names})


class Try(NamedTuple):
    """A candidate in the pilot, with its ``nll`` (rows,) on the validation rows."""

    cls: type[samplers.Sampler]
    nll: np.ndarray
    gradient_s: float


def plan(
    target: BNN,
    seconds: float,
    *,
    chains: int = CHAINS,
    device: str = "auto",
    seed: int = 0,
) -> SamplerPlan:
    """Plan the run of a network in ``seconds`` of computing time, an eighth of which the pilot takes."""
    bench = _Bench(target, chains, device, seed, computing_time(choose_device(device)))
    begun = bench.clock()
    plain_s = bench.gradient_seconds(_candidates()[0])
    found = _pilot(bench, _PILOT * seconds, _STEPS_COST * plain_s)
    cost = bench.clock() - begun
    left = max(seconds - cost, 0.1 * seconds)
    best = _best(found) if found else None
    gradient_s = _STEPS_COST * plain_s if best is None else max(best.gradient_s, plain_s)
    able = (
        (cls, proposal)
        # On a machine that is temporarily busy, the run takes longer instead of failing.
        for stretch in _STRETCHES
        for cls in (_candidates() if best is None else [best.cls])
        if (proposal := cls.proposal(bench.budget(stretch * left, gradient_s))) is not None
    )
    cls, proposal = next(able, (None, None))
    if cls is None:
        minutes = float(f"{max(_ENOUGH * plain_s, 2 * seconds) / 60:.2g}")
        raise BnnvizError(
            f"No sampler can produce draws of this network in {_seconds(seconds)}, because one gradient takes"
            f" {_seconds(plain_s)}.",
            "minutes",
            Remedy("allow more time", {"minutes": minutes}),
            Remedy("name a sampler"),
        )
    others = [f"{one.cls.title} {one.nll.mean():.3f}" for one in found]
    judged = f", and the validation NLL of the pilot ({', '.join(others)})" if len(others) > 1 else ""
    return SamplerPlan(
        sampler=cls.registered,
        settings=proposal.settings,
        chains=chains,
        warmup=proposal.warmup,
        draws=proposal.draws,
        seconds=left,
        sentence=(
            f"{cls.title} was chosen: a gradient of all {len(target.x):,} rows for {chains} chains takes"
            f" {1000 * plain_s:.2g} ms, so that {proposal.reason}{judged}; the pilot took {_seconds(cost)} of"
            f" {_seconds(seconds)}."
        ),
    )


@dataclass(frozen=True)
class _Bench:
    """Run candidates on a target under equal conditions."""

    target: BNN
    chains: int
    device: str
    seed: int
    clock: Callable[[], float]

    def run(self, cls: type[samplers.Sampler], proposal: BudgetProposal) -> Run:
        """Return the run of a proposal before its start."""
        spec = Spec(
            target=self.target.title,
            sampler=cls.registered,
            settings=proposal.settings,
            chains=self.chains,
            warmup=proposal.warmup,
            draws=proposal.draws,
            device=self.device,
            seed=self.seed,
        )
        return Run(spec.checked(own_target=True), target=self.target)

    def budget(self, seconds: float, gradient_s: float) -> Budget:
        """Return the budget that ``seconds`` allow."""
        return Budget(_SAFE * seconds / gradient_s, self.chains, len(self.target.x), self.target.dim)

    def gradient_seconds(self, cls: type[samplers.Sampler]) -> float:
        """Return the seconds per gradient of all rows, for all chains at once."""
        run = self.run(cls, BudgetProposal({}, 1, 1, ""))
        x = run.target.initial(self.chains, run.rng)
        run.target.gradient(x)
        begun, count = self.clock(), 0
        while (passed := self.clock() - begun) < _TIMED_S or count < 3:
            float(run.target.gradient(x)[0].sum())
            count += 1
        return passed / count


def _candidates() -> list[type[samplers.Sampler]]:
    """Return the eligible samplers, reference samplers first."""
    plain = samplers.Sampler.proposal.__func__
    found = [cls for cls in samplers.REGISTRY if cls.proposal.__func__ is not plain]
    return sorted(found, key=lambda cls: (-cls.traits.reference_rank, not cls.traits.converges))


def _pilot(bench: _Bench, seconds: float, gradient_s: float) -> list[Try]:
    """Let candidates sample a part of the rows and predict the rest; those that fail are omitted."""
    rows = len(bench.target.x)
    if rows < _FEWEST_ROWS:
        return []
    fit, left_out = _parts(bench.target, rows)
    part = replace(bench, target=fit)
    proposals = [(cls, cls.proposal(bench.budget(seconds / len(_candidates()), gradient_s))) for cls in _candidates()]
    able = [(cls, proposal) for cls, proposal in proposals if proposal is not None]
    found = []
    for cls, proposal in able if len(able) > 1 else ():
        try:
            one = _try(part, cls, proposal, 2 * seconds / len(able), left_out)
        except BnnvizError:
            continue
        found += [] if one is None else [one]
    return found


def _parts(target: BNN, rows: int) -> tuple[BNN, tuple[np.ndarray, np.ndarray]]:
    """Return the target on a part of its rows, and the others in the units of the data."""
    data = target.data_set
    x, y = (target.x.cpu().numpy(), target.y.cpu().numpy()) if data is None else (data.x_train, data.y_train)
    order = np.random.default_rng(0).permutation(rows)
    count = min(_MOST_VALIDATION, int(_VALIDATION * rows))
    # Half of them are the outermost rows, against samplers that are overconfident outside the data.
    inputs = target.x.flatten(1).double().cpu().numpy()
    far = np.argsort(-np.square(inputs - inputs.mean(0)).sum(1))[: count // 2]
    order = np.concatenate([far, order[~np.isin(order, far)]])
    made = target.clone()
    made.replace_rows(x[order[count:]], y[order[count:]])
    return made, (x[order[:count]], y[order[:count]])


def _try(
    bench: _Bench, cls: type[samplers.Sampler], proposal: BudgetProposal, seconds: float, left_out: tuple
) -> Try | None:
    """Try a candidate; return None if it has no draws after twice its time."""
    run = bench.run(cls, proposal)
    begun = bench.clock()
    drive(run, _SLICE_S, stopped=lambda: bench.clock() > begun + seconds)
    passed = bench.clock() - begun
    if run.error is not None or not run.store.common(run.alive):
        return None
    # On the network's scale, as in the summary of a run.
    nll = -log_densities(network_draws(run), *left_out) - log_scale(bench.target)
    gradients = run.gradients / max(len(bench.target.x) * bench.chains, 1)
    return Try(cls, nll, passed / max(gradients, 1.0)) if np.isfinite(nll).all() else None


def _best(found: list[Try]) -> Try:
    """Return the first candidate, or a later one that is better by two standard errors inside and outside the data."""
    best = found[0]
    for one in found[1:]:
        halves = np.split(one.nll - best.nll, [len(best.nll) // 2])  # the outermost rows, and the others
        if all(half.mean() < -2 * half.std() / math.sqrt(len(half)) for half in halves):
            best = one
    return best


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"
