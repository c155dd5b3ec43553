"""Collect draws, statistics and plots of samplers that move from point to point, from blocks of moves."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.samplers.observers import MOVE, ChainTrace, DrawCollector, Draws, Projection, SamplerStats, StepBatch

_POINTS = 240
_KEPT_NUMBERS = 4_000_000  # 16 MB


class MoveDrawCollector(DrawCollector):
    """Draw after a fixed number of moves, from chains that are alive."""

    saved_names = ("first", "made")

    def __init__(self, sampler: Any, state: Any) -> None:
        self._sampler, self._every, self._stats = sampler, sampler.thin, sampler.sample_stats()
        self.first = state.count.clone()
        self.made = torch.zeros(len(state.x), dtype=torch.int64, device=state.x.device)

    def collect(self, step_batch: StepBatch) -> Draws:
        """Return the positions after ``thin`` moves."""
        steps, chains, index = self.due(step_batch)
        if not len(steps):
            return Draws(chains, chains, step_batch.after.x[:0])
        some, place = steps.unique_consecutive(return_inverse=True)
        x = torch.stack([step_batch.state_after(step).x for step in some.tolist()])
        return Draws(chains, index, x[place, chains], stats=self.stats(step_batch, steps, chains), step=steps)

    def stats(self, step_batch: StepBatch, steps: Tensor, chains: Tensor) -> Tensor | None:
        """Return the sample statistics (n, names) of moves of chains (n,) that end in steps; None without names."""
        columns = [step_batch.column(name)[steps, chains].double() for name in self._stats]
        return torch.stack(columns, dim=1) if columns else None

    def due(self, step_batch: StepBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Return step, chain and number (n,) of the due draws, ordered by step."""
        count = step_batch.history("count")
        due = (count[1:] > count[:-1]) & (torch.remainder(count[1:] - self.first, self._every) == 0)
        arrived = self._sampler.arrived(step_batch)
        if arrived is not None:
            due = due & arrived
        index = self.made + due.cumsum(0) - 1
        self.made = index[-1] + 1
        steps, chains = due.nonzero(as_tuple=True)
        return steps, chains, index[steps, chains]


class MoveStats(SamplerStats):
    """Count moves and average the sampler's statistics (`Sampler.info_means`)."""

    saved_names = ("moves", "sums")

    def __init__(self, sampler: Any) -> None:
        self._text = sampler.text(sampler)
        self.moves = 0
        self.sums = dict.fromkeys(sampler.info_means, 0.0)

    @property
    def events(self) -> int:
        """Moves of all chains."""
        return self.moves

    def add(self, step_batch: StepBatch, counted: np.ndarray) -> None:
        """Count a block, for the chains of which ``counted`` is true."""
        chosen = torch.as_tensor(counted, device=step_batch.after.x.device)
        self.moves += int((step_batch.after.count - step_batch.before[0].count)[chosen].sum())
        for name in self.sums:
            values = step_batch.column(name)[:, chosen].double()
            self.sums[name] += float(values.nan_to_num(0.0, 0.0, 0.0).sum())

    def summary(self) -> dict[str, float]:
        """Return the number of moves and the means of the statistics."""
        moves = max(self.moves, 1)
        return {"events": self.moves, "moves": self.moves} | {name: s / moves for name, s in self.sums.items()}

    def rows(self) -> list[list[str]]:
        """Return the statistics as rows of the table view."""
        return self._text.mean_rows(self.summary())

    def sentence(self) -> str:
        """Return the counts as text."""
        words = self._text.mean_words(self.summary())
        return f"All chains so far: {self.moves:,} moves{words and ', '}{words}."


class MoveTrace(ChainTrace):
    """Follow one chain: its last points and its last move."""

    def __init__(self, sampler: Any) -> None:
        super().__init__(sampler)
        self._points: deque[Tensor] = deque(maxlen=_POINTS)
        # Number, state and info of the last move, and the chain
        self._moved: tuple[int, Any, Any, int] | None = None
        # States before and after the last step, its info, the chain
        self._step: tuple[Any, Any, Any, int] | None = None
        self._visited: list[Tensor] = []

    def begin(self, state: Any, chain: int) -> None:
        """Start at the watched chain's state, before its first step."""
        self._points = deque([state.x[chain]], maxlen=max(2, min(_POINTS, _KEPT_NUMBERS // state.x.shape[1])))
        self.now = self._points[-1]

    def record(self, step_batch: StepBatch, chain: int) -> None:
        """Record the watched chain's steps in a block."""
        if self.now is None:
            self.begin(step_batch.before[0], chain)
        count = step_batch.history("count")[:, chain]
        ended = (count[1:] > count[:-1]).nonzero()[:, 0].tolist()
        self._points.extend(step_batch.state_after(step).x[chain] for step in ended[-_POINTS:])
        self.now = self._points[-1]
        self._visited = self.sampler.visited(self._visited, step_batch, chain)
        self.count += len(ended)
        self.lately.extend((step_batch.first_step + step, MOVE) for step in ended)
        if ended:
            last = ended[-1]
            self._moved = int(count[last + 1]), step_batch.state_after(last), step_batch.infos[last], chain
        self._step = step_batch.before[-1], step_batch.after, step_batch.infos[-1], chain

    def part(self, name: str, plane: Projection, playing: bool) -> dict[str, Any]:
        """Return one part of a frame: path or caption."""
        if self.now is None:
            return {}
        return self._path(plane) if name == "path" else self._caption()

    def _path(self, plane: Projection) -> dict[str, Any]:
        points, nothing = self._projected(plane, self._points), np.empty(0)
        passed: list[Tensor] = []
        if plane.axes is not None:  # a phase plane shows moves instead
            passed = self._visited or ([] if self._step is None else self.sampler.trajectory(*self._step))
        visited = self._projected(plane, passed) if passed else None
        return {
            "plane": {"kind": plane.kind},
            "x_label": plane.labels[0],
            "y_label": plane.labels[1] if plane.axes is not None else "last move",
            "basis": plane.basis,
            "x": points[:, 0],
            "y": points[:, 1],
            "age": np.arange(len(points))[::-1] / max(len(points) - 1, 1),
            "visited_x": nothing if visited is None else visited[:, 0],
            "visited_y": nothing if visited is None else visited[:, 1],
            "event_x": nothing,
            "event_y": nothing,
            "event_kind": np.empty(0, dtype=np.int8),
            "event_step": np.empty(0, dtype=np.int64),
            "now_x": float(points[-1, 0]),
            "now_y": float(points[-1, 1]),
            "now_dx": 0.0,
            "now_dy": 0.0,
            "contour": None,
        }

    def _projected(self, plane: Projection, points: Iterable[Tensor]) -> np.ndarray:
        """Return points in the plane (n, 2); in a phase plane, position and last move."""
        x = torch.stack(list(points)).double().cpu().numpy()
        if plane.axes is None:
            return np.column_stack([x[:, 0], np.diff(x[:, 0], prepend=x[0, 0])])
        with np.errstate(invalid="ignore"):  # a diverged chain has no coordinates in the plane
            return plane.project(x)

    def _caption(self) -> dict[str, Any]:
        text = self.sampler.text(self.sampler)
        if self._moved is None:
            return {"text": text.waiting, "kind": "phase"}
        move, *last = self._moved
        return {"text": f"Move {move:,}: {text.caption(*last)}", "kind": "phase"}
