"""Collect draws, statistics and plots of a population of proposals from blocks of phases."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.samplers.observers import MOVE, ChainTrace, DrawCollector, Draws, Projection, SamplerStats, StepBatch

_DRAW, _WEIGH, _MOVE = 0, 1, 4
_SHOWN = 1500  # draws in one plot: half of them those with the largest weights
_REMEMBERED = 400  # iterations with a stored weight ESS


class PopulationDrawCollector(DrawCollector):
    """Return the draws of each iteration after they have been weighted."""

    saved_names = ("made",)

    def __init__(self, state: Any) -> None:
        self.made = 0

    def collect(self, step_batch: StepBatch) -> Draws:
        """Return the draws that were weighted in a block."""
        states = [*step_batch.before[1:], step_batch.after]
        steps = [step for step, info in enumerate(step_batch.infos) if info.phase == _WEIGH]
        weighed = [states[step] for step in steps]
        after = step_batch.after
        if not weighed:
            none = torch.empty(0, dtype=torch.int64, device=after.x.device)
            return Draws(none, none, after.x[:0], log_weight=after.logs.new_empty(0))
        proposals, each = after.logs.shape
        draws = torch.stack([state.draws for state in weighed])
        number = torch.arange(self.made, self.made + len(weighed) * each, device=draws.device)
        self.made += len(weighed) * each
        chain = torch.arange(proposals, device=draws.device)
        return Draws(
            chain.view(1, -1, 1).expand(len(weighed), -1, each).flatten(),
            number.view(len(weighed), 1, each).expand(-1, proposals, -1).flatten(),
            draws.flatten(0, 2),
            log_weight=torch.stack([state.logs for state in weighed]).flatten(),
            step=torch.as_tensor(steps, device=draws.device).repeat_interleave(proposals * each),
        )


class PopulationStats(SamplerStats):
    """Count over all proposals: iterations, draws without weight, covariance failures, gradient steps."""

    saved_names = ("counts", "weight_ess", "weighed")
    _NAMES = ("iterations", "drawn", "weightless", "lost", "fallbacks", "steps", "refused", "halvings")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(self._NAMES, 0)
        self.weight_ess, self.weighed = 0.0, 0

    @property
    def events(self) -> int:
        """Iterations begun, the last of which may be under way."""
        return self.counts["iterations"]

    def add(self, step_batch: StepBatch, counted: np.ndarray) -> None:
        """Count a block; all proposals count, since each belongs to the mixture."""
        states = [*step_batch.before[1:], step_batch.after]
        for state, info in zip(states, step_batch.infos, strict=True):
            for name in ("weightless", "lost", "fallbacks"):
                self.counts[name] += getattr(info, name)
            if info.phase == _DRAW:
                self.counts["iterations"] += 1
                self.counts["drawn"] += state.logs.numel()
            if info.phase == _WEIGH:
                self.weight_ess, self.weighed = weight_ess(state.logs), state.logs.numel()
            if info.phase == _MOVE and info.examples:
                taken = state.halvings[state.halvings >= 0]
                self.counts["steps"] += len(taken)
                self.counts["refused"] += len(state.halvings) - len(taken)
                self.counts["halvings"] += int(taken.sum())

    def summary(self) -> dict[str, float]:
        """Return the counts, and the mean number of halvings of a gradient step."""
        counts = dict(self.counts)
        halvings = counts.pop("halvings") / max(counts["steps"], 1)
        gradient_steps = counts.pop("steps")
        weights = {"last_weight_ess": self.weight_ess, "last_weighed": self.weighed}
        return {"events": self.events, **counts, "gradient_steps": gradient_steps, "halvings": halvings} | weights

    def rows(self) -> list[list[str]]:
        """Return the counts as rows of the table view."""
        found = self.summary()
        rows = [["Iterations", f"{found['iterations']:,}", ""]]
        if found["gradient_steps"] or found["refused"]:
            refused = found["refused"] / (found["refused"] + found["gradient_steps"])
            rows.append(["Halvings of a gradient step", f"{found['halvings']:.1f}", ""])
            rows.append(
                ["Gradient steps too long at any length", f"{100 * refused:.0f}%", "bad" if refused > 0.5 else ""]
            )
        rows.append(["Covariances not factorised", f"{found['fallbacks']:,}", "bad" if found["fallbacks"] else ""])
        if found["weightless"]:
            rows.append(["Draws without weight: U is not finite", f"{found['weightless']:,}", "bad"])
        return rows

    def sentence(self) -> str:
        """Return the counts as text."""
        found = self.summary()
        text = f"{found['iterations']:,} iterations so far, {found['drawn']:,} draws."
        if not self.weighed:
            return text
        return f"{text} Weight ESS of the last {self.weighed:,} draws: {self.weight_ess:,.0f}."


class PopulationTrace(ChainTrace):
    """Store the population after the last phase, and the weight ESS of each iteration."""

    def __init__(self, sampler: Any) -> None:
        super().__init__(sampler)
        self.last = -1
        self._state: Any = None
        self._found: Any = None  # the state with the last weighted draws
        self._info: Any = None
        self._chain = 0
        self._iteration: list[int] = []
        self._ess: list[float] = []

    def record(self, step_batch: StepBatch, chain: int) -> None:
        """Record the population."""
        states = [*step_batch.before[1:], step_batch.after]
        for step, (state, info) in enumerate(zip(states, step_batch.infos, strict=True), step_batch.first_step):
            if info.phase == _WEIGH:
                self._iteration = [*self._iteration, int(state.count.max()) + 1][-_REMEMBERED:]
                self._ess = [*self._ess, weight_ess(state.logs)][-_REMEMBERED:]
                self._found = state
            if info.phase == _MOVE:
                self.count += 1
                self.lately.append((step, MOVE))
        self._state, self._info, self._chain = step_batch.after, step_batch.infos[-1], chain
        self.last = self._info.phase
        self._found = self._state if self.last != _DRAW else self._found
        self.now = self._state.x[chain]

    @property
    def iteration(self) -> int:
        """Number of the iteration whose draws were last weighted, from 1; 0 before."""
        return self._iteration[-1] if self._iteration else 0

    @property
    def weight_ess(self) -> float:
        """Weight ESS of the last weighted draws; nan before the first."""
        return self._ess[-1] if self._ess else float("nan")

    def current(self) -> tuple[Tensor, Tensor] | None:
        """Return the last weighted draws (draws, dim) and their log weights (draws,); None before the first."""
        if self._found is None or not bool(torch.isfinite(self._found.logs).any()):
            return None
        return self._found.draws.flatten(0, 1), self._found.logs.flatten()

    def part(self, name: str, plane: Projection, playing: bool) -> dict[str, Any]:
        """Return one part of a frame: population, gauge or caption."""
        if self._state is None:
            return {}
        if name == "caption":
            return {"text": self._caption(), "kind": "phase"}
        if name == "population":
            return self._population(plane)
        drawn = self._state.logs.numel()
        return {
            "iteration": np.array(self._iteration),
            "share": np.array(self._ess) / drawn,
            "draws": drawn,
            "ess": self.weight_ess,
        }

    def _population(self, plane: Projection) -> dict[str, Any]:
        state, last = self._state, self.last
        number, size = self._shown()
        draws = state.draws.flatten(0, 1)[number]
        current = last != 0 or self.count > 0
        moved = state.origin if last < 2 else state.landed
        draw_xy = _project(plane, draws) if current else np.empty((0, 2))
        if plane.axes is None and current:
            # With one coordinate the height shows the weights.
            draw_xy[:, 1] = np.maximum(size, 0.0)
        return {
            "x_label": plane.labels[0],
            "y_label": plane.labels[1] if plane.axes is not None else "weight / largest",
            "basis": plane.basis,
            "phase": last,
            "iteration": self.count + (last != 4),
            "draw_xy": draw_xy,
            "draw_size": size,
            "draw_proposal": (number // state.draws.shape[1]).cpu().numpy(),
            "mean_xy": _project(plane, state.origin),
            "root": self._roots(plane),
            "landed_xy": _project(plane, moved),
            "end_xy": _project(plane, state.x if last == _MOVE else moved),
            "survives": (state.chosen >= 0).cpu().numpy(),
            "parent": (state.chosen // state.draws.shape[1]).cpu().numpy(),
            "climbs": self.sampler.gradient,
            "halvings": state.halvings.cpu().numpy() if last == _MOVE else np.full(len(state.x), -1),
        }

    def _shown(self) -> tuple[Tensor, np.ndarray]:
        """Return the indices of the plotted draws, and their weights relative to the largest; -1: unweighted."""
        logs = self._state.logs.flatten()
        number = torch.arange(len(logs), device=logs.device)
        if self.last == 0:
            stride = -(-len(logs) // _SHOWN)
            return number[::stride], np.full(len(number[::stride]), -1.0)
        if len(logs) > _SHOWN:
            heavy = logs.topk(_SHOWN // 2).indices
            spread = number[:: -(-2 * len(logs) // _SHOWN)]
            number = torch.cat([heavy, spread]).unique()
        size = (logs[number] - logs.max()).exp() if bool(torch.isfinite(logs).any()) else torch.zeros_like(logs[number])
        return number, size.float().cpu().numpy()

    def _roots(self, plane: Projection) -> np.ndarray:
        """Return (proposals, 2, 2): roots of the covariances of the last draws in the plane."""
        factor = self._state.factor
        if plane.axes is None:
            sd = factor[:, 0] if factor.ndim == 2 else factor[:, 0, 0]
            flat = np.zeros((len(sd), 2, 2))
            flat[:, 0, 0] = sd.double().cpu().numpy()
            return flat
        axes = torch.as_tensor(plane.axes, dtype=factor.dtype, device=factor.device)
        root = factor[:, :, None] * axes if factor.ndim == 2 else factor.mT @ axes
        cov = (root.mT @ root).double()
        largest = cov.diagonal(dim1=1, dim2=2).amax(1).clamp_min(1e-300)
        eye = torch.eye(2, dtype=cov.dtype, device=cov.device)
        return torch.linalg.cholesky(cov + 1e-9 * largest[:, None, None] * eye).cpu().numpy()

    def _caption(self) -> str:
        state, info = self._state, self._info
        proposals, each = state.logs.shape
        iteration = f"Iteration {self.count + (info.phase != _MOVE):,}: "
        if info.phase == 0:
            return f"{iteration}{proposals} proposals draw {each} points each."
        if info.phase == _WEIGH:
            ess, drawn = self._ess[-1], proposals * each
            none = "" if not info.lost else f" {info.lost} proposals have no draw with a weight and stay."
            return f"{iteration}draws are weighted; the weight ESS is {ess:,.1f} of {drawn:,} draws.{none}"
        if info.phase == 2:
            parents = len((state.chosen[state.chosen >= 0]).unique())
            return f"{iteration}{parents} draws survive, one per proposal, selected by their weights."
        if info.phase == 3:
            return f"{iteration}{self._adapted(info)}"
        return f"{iteration}{self._moved(state)}"

    def _adapted(self, info: Any) -> str:
        if not self.sampler.adapt_covariance:
            return "the covariances are not adapted."
        fell = f"; {info.fallbacks} could not be factorised and stay" if info.fallbacks else ""
        return f"the covariances follow the weighted draws{fell}."

    def _moved(self, state: Any) -> str:
        if not self.sampler.gradient:
            return "there is no gradient step; the survivors are the new means."
        taken = state.halvings[state.halvings >= 0]
        refused = len(state.halvings) - len(taken)
        mean = float(taken.double().mean()) if len(taken) else 0.0
        stay = f"; {refused} found no step short enough and stay" if refused else ""
        return f"the survivors move along the gradient, with {mean:.1f} halvings of each step on average{stay}."


def weight_ess(logs: Tensor) -> float:
    """Return the weight ESS, 1 / sum of squared normalised weights, from log weights; 0 without weights."""
    if not bool(torch.isfinite(logs).any()):
        return 0.0
    return float(1 / torch.softmax(logs.flatten(), 0).square().sum())


def _project(plane: Projection, points: Tensor) -> np.ndarray:
    """Return points (n, dim) in the plane, (n, 2); one coordinate is placed on a line."""
    x = points.double().cpu().numpy()
    if plane.axes is None:
        return np.column_stack([x[:, 0], np.zeros(len(x))])
    return plane.project(x)
