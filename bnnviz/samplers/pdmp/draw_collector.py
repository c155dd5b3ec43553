"""Collect draws and statistics of piecewise deterministic processes from blocks of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.samplers.observers import DrawCollector, Draws, SamplerStats, StepBatch
from bnnviz.samplers.pdmp.thinning import BOUNCE, REFRESH, REJECTED, ROUNDING, is_event
from bnnviz.samplers.text import percent

_RATIO_EDGES = np.concatenate([np.linspace(0, 2, 201), np.geomspace(2, 1e6, 200)[1:], [np.inf]])

_COUNTS = ("evaluations", "bounces", "refreshes", "proposals", "violations")
_BOX = (("q25", 0.25), ("median", 0.5), ("q75", 0.75), ("q99", 0.99))


class PathCollectorBase(DrawCollector):
    """Evaluate the path at the draws of a block, and sum its integrals, (chains, 1 + 2 dim) in float64."""

    saved_names = ("made", "path")

    def __init__(self, sampler: Any, state: Any) -> None:
        self.sampler, self.scaling = sampler, state.adaptation.scaling
        self.refreshments = sampler.refreshments(state.adaptation)
        chains, dim = state.x.shape
        self.made = torch.zeros(chains, dtype=torch.int64, device=state.x.device)
        self.path = None
        if sampler.integrates(chains, dim):
            self.path = torch.zeros(chains, 1 + 2 * dim, dtype=torch.float64, device=state.x.device)

    def _integrate(self, x: Tensor, v: Tensor, s0: Tensor, s1: Tensor, chain: Tensor) -> Tensor:
        scaling = self.sampler.scaling_of(self.scaling, chain)
        return torch.cat([(s1 - s0)[:, None], *self.sampler.integrals(x, v, s0, s1, scaling)], dim=1)

    def _draws(self, step_batch: StepBatch, step: Tensor, chain: Tensor, index: Tensor, t: Tensor) -> Draws:
        """Evaluate the segments of the steps at time t; ordered by step."""
        path = None
        if self.path is not None:
            # The integrals before each step of the block (steps, chains, 1 + 2 dim), to which its pieces are added.
            x, v = (step_batch.history(name)[:-1].flatten(0, 1) for name in ("x", "v"))
            s0, s1 = (step_batch.column(name).flatten() for name in ("s0", "s1"))
            every = torch.arange(len(self.path), device=x.device).repeat(len(step_batch.infos))
            pieces = self._integrate(x, v, s0, s1, every).view(len(step_batch.infos), *self.path.shape)
            reached = self.path + pieces.cumsum(0)
            path, self.path = torch.cat([self.path[None], reached[:-1]]), reached[-1]
        if not len(step):
            return Draws(chain, index, step_batch.after.x[:0])
        order = torch.argsort(step, stable=True)
        step, chain, index, t = step[order], chain[order], index[order], t[order]
        x, v = (step_batch.history(name)[step, chain] for name in ("x", "v"))
        if path is not None:
            path = path[step, chain] + self._integrate(x, v, step_batch.column("s0")[step, chain], t, chain)
        scaling = self.sampler.scaling_of(self.scaling, chain)
        return Draws(chain, index, self.sampler.flow(x, v, t, scaling)[0], path, step=step)


class PathDrawCollector(PathCollectorBase):
    """Draw uniformly in path time: draw k of a chain is taken (k + 1) spacings after the end of tuning."""

    saved_names = ("made", "path", "origin", "spacing")

    def __init__(self, sampler: Any, state: Any, spacing: float) -> None:
        super().__init__(sampler, state)
        self.origin, self.spacing = state.clock + state.s, spacing

    def collect(self, step_batch: StepBatch) -> Draws:
        """Return the draws whose times the block passed."""
        clock = step_batch.history("clock")[:-1]
        start, reached = clock + step_batch.column("s0"), clock + step_batch.column("s1")
        passed = ((reached[-1] - self.origin) / self.spacing).floor().long().clamp_min(0)
        most = int((passed + 1 - self.made).max().clamp_min(0))
        index = self.made[:, None] + torch.arange(most, device=clock.device)
        times = self.origin[:, None] + (index + 1).to(self.origin.dtype) * self.spacing
        # Compare the times themselves: a draw belongs to the first step that reaches its time, in any block.
        due = times <= reached[-1][:, None]
        step = torch.searchsorted(reached.T.contiguous(), times.contiguous()).clamp_max(len(step_batch.infos) - 1)
        chain, column = torch.nonzero(due, as_tuple=True)
        step, index, time = step[chain, column], index[chain, column], times[chain, column]
        self.made = self.made + due.sum(1)
        # Rounding may put a time just outside its piece of path.
        s = torch.minimum(torch.maximum(time, start[step, chain]), reached[step, chain]) - clock[step, chain]
        return self._draws(step_batch, step, chain, index, s)


class EventDrawCollector(PathCollectorBase):
    """Draw at bounces and refreshments, as the papers do, which is biased."""

    def collect(self, step_batch: StepBatch) -> Draws:
        """Return the positions at the block's events."""
        event = is_event(step_batch.column("kind"))
        step, chain = torch.nonzero(event, as_tuple=True)
        number = self.made + event.cumsum(0) - 1
        self.made = self.made + event.sum(0)
        return self._draws(step_batch, step, chain, number[step, chain], step_batch.column("t")[step, chain])


class RatioStats(SamplerStats):
    """Count events and proposals, and record the distribution of rate / envelope."""

    saved_names = (*_COUNTS, "excess", "least", "most", "ratios")

    def __init__(self) -> None:
        self.evaluations = self.bounces = self.refreshes = self.proposals = self.violations = 0
        self.excess = 0.0
        self.least, self.most = float("inf"), 0.0
        self.ratios = torch.zeros(len(_RATIO_EDGES) - 1, dtype=torch.int64)

    @property
    def events(self) -> int:
        """Bounces and refreshments."""
        return self.bounces + self.refreshes

    def add(self, step_batch: StepBatch, counted: np.ndarray) -> None:
        """Count a block, for the chains of which ``counted`` is true."""
        kind = step_batch.column("kind").cpu().numpy()[:, counted]
        proposal = (kind == REJECTED) | (kind == BOUNCE)
        ratio = step_batch.column("ratio").cpu().numpy()[:, counted][proposal]
        finite = ratio[np.isfinite(ratio)]
        self.evaluations += kind.size
        self.bounces += int((kind == BOUNCE).sum())
        self.refreshes += int((kind == REFRESH).sum())
        self.proposals += ratio.size
        self.violations += int((ratio > 1 + ROUNDING).sum())
        self.excess += float(np.maximum(finite - 1, 0).sum())
        place = np.searchsorted(_RATIO_EDGES, finite, side="right") - 1
        self.ratios += torch.from_numpy(np.bincount(place, minlength=len(self.ratios)))
        self.least = min(self.least, float(np.fmin.reduce(ratio, initial=np.inf)))
        self.most = max(self.most, float(np.fmax.reduce(ratio, initial=0.0)))

    def quantile(self, share: float) -> float:
        """Return a quantile of rate / envelope, up to the resolution of the histogram."""
        if not self.ratios.sum():
            return float("nan")
        cell = int(np.searchsorted(self.ratios.cumsum(0).numpy(), share * int(self.ratios.sum())))
        return float(_RATIO_EDGES[min(cell + 1, len(_RATIO_EDGES) - 2)])

    def summary(self) -> dict[str, float]:
        """Return acceptance, share of violations, E[(ratio - 1)+], the ratio's 99% quantile and counts."""
        proposals = max(self.proposals, 1)
        return {
            "events": self.events,
            "bounces": self.bounces,
            "refreshes": self.refreshes,
            "proposals": self.proposals,
            "acceptance": self.bounces / proposals,
            "violation_share": self.violations / proposals,
            "excess": self.excess / proposals,
            "ratio_q99": self.quantile(0.99),
        }

    def box(self) -> dict[str, float]:
        """Return minimum, quartiles, 99% quantile and maximum of rate / envelope; {} before the first proposal."""
        if not self.ratios.sum():
            return {}
        # A cell's edge may be outside the range of the ratios.
        inner = {name: float(np.clip(self.quantile(share), self.least, self.most)) for name, share in _BOX}
        share = self.violations / self.proposals
        return inner | {"least": self.least, "most": self.most, "proposals": self.proposals, "violation_share": share}

    def rows(self) -> list[list[str]]:
        """Return the statistics as rows of the table view."""
        figures = self.summary()
        share = percent(figures["refreshes"] / figures["events"]) if figures["events"] else "none yet"
        refreshed = ["Refreshments among events", share, ""]
        if not figures["proposals"]:
            return [refreshed, ["Proposals", "none", ""]]
        bad = "bad" if figures["violation_share"] > 0.01 else ""
        return [
            refreshed,
            ["Accepted proposals", f"{100 * figures['acceptance']:.0f}%", ""],
            ["Violations", f"{100 * figures['violation_share']:.1f}%", bad],
            ["Envelope exceeded by, mean", f"{figures['excess']:.3f}", bad],
            ["Envelope exceeded by, worst 1%", f"{max(figures['ratio_q99'] - 1, 0):.2f}", bad],
        ]

    def sentence(self) -> str:
        """Return the counts as text."""
        counts = {"bounce": self.bounces, "refreshment": self.refreshes}
        events = "All chains: " + ", ".join(f"{n:,} {name}{'s' * (n != 1)}" for name, n in counts.items())
        if not self.proposals:
            return f"{events}."
        accepted = f"{100 * self.bounces / self.proposals:.0f}% of {self.proposals:,} proposals accepted"
        violated = f"{self.violations:,}" if self.violations else "none"
        return f"{events}; {accepted}, {violated} violated the envelope."
