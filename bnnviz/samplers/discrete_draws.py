"""Draws, counts and the picture of samplers that move from point to point, taken from blocks of moves."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.samplers.base import Block, Plane, Rows

_POINTS = 240
_KEPT_NUMBERS = 4_000_000  # 16 MB


class StepEmitter:
    """Draws every few moves, of the chains that still move."""

    spacing = float("nan")

    def __init__(self, sampler: Any, state: Any) -> None:
        self._every = sampler.every
        self.seen = 0
        self.made = torch.zeros(len(state.x), dtype=torch.int64, device=state.x.device)

    def collect(self, block: Block) -> Rows:
        """Return the positions after every so many moves."""
        after = [*block.before[1:], block.after]
        last = self.seen + len(after)
        taken = [after[k - self.seen - 1] for k in range(self.seen + 1, last + 1) if k % self._every == 0]
        self.seen = last
        chains, index, x = [], [], []
        for state in taken:
            alive = state.alive.nonzero()[:, 0]
            chains.append(alive)
            index.append(self.made[alive])
            x.append(state.x[alive])
            self.made[alive] += 1
        if not taken:
            nothing = self.made[:0]
            return Rows(nothing, nothing, block.after.x[:0])
        return Rows(torch.cat(chains), torch.cat(index), torch.cat(x))

    def save(self) -> dict[str, Any]:
        """Return its state for a checkpoint."""
        return {"seen": self.seen, "made": self.made}

    def load(self, saved: dict[str, Any]) -> None:
        """Take a saved state over."""
        self.seen, self.made = saved["seen"], saved["made"].to(self.made.device)


class MoveTally:
    """Counts of moves, and means of what the sampler tells of each."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self.moves = 0
        self.sums = dict.fromkeys(sampler.told, 0.0)

    @property
    def events(self) -> int:
        """Moves of all chains."""
        return self.moves

    def add(self, block: Block, counted: np.ndarray) -> None:
        """Count a block, for the chains of which ``counted`` is true."""
        self.moves += int(counted.sum()) * len(block.infos)
        chosen = torch.as_tensor(counted, device=block.after.x.device)
        for name in self.sums:
            values = torch.stack([getattr(info, name) for info in block.infos])[:, chosen].double()
            self.sums[name] += float(values.nan_to_num(0.0, 0.0, 0.0).sum())

    def summary(self) -> dict[str, float]:
        """Return the number of moves, and the means of what is told."""
        moves = max(self.moves, 1)
        return {"events": self.moves, "moves": self.moves} | {name: s / moves for name, s in self.sums.items()}

    def rows(self) -> list[list[str]]:
        """Return the figures as rows of the table view."""
        return self._sampler.told_rows(self.summary())

    def sentence(self) -> str:
        """Return the counts in one sentence."""
        return f"All chains so far: {self.moves:,} moves, {self._sampler.told_words(self.summary())}."

    def save(self) -> dict[str, Any]:
        """Return its state for a checkpoint."""
        return {"moves": self.moves, "sums": self.sums}

    def load(self, saved: dict[str, Any]) -> None:
        """Take a saved state over."""
        self.moves, self.sums = saved["moves"], saved["sums"]


class MoveTracer:
    """Follows one chain: its last points, and what moved it."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self.count = 0
        self.now: Tensor | None = None
        self._points: deque[Tensor] = deque(maxlen=_POINTS)
        self._last: tuple[int, Any, int] | None = None

    def record(self, block: Block, chain: int) -> None:
        """Note what the watched chain did in a block."""
        states = [*block.before, block.after]
        if self.now is None:
            most = max(2, min(_POINTS, _KEPT_NUMBERS // states[0].x.shape[1]))
            self._points = deque([states[0].x[chain]], maxlen=most)
        self._points.extend(state.x[chain] for state in states[1:][-_POINTS:])
        self.now = self._points[-1]
        self.count += len(block.infos)
        self._last = block.first_step + len(block.infos), block.infos[-1], chain

    def part(self, name: str, plane: Plane, playing: bool) -> dict[str, Any]:
        """Return one part of a frame: path or caption."""
        if self.now is None:
            return {}
        return self._path(plane) if name == "path" else self._caption()

    def event(self, step: int) -> tuple[int, str, Tensor]:
        """Raise: there are no events.

        Raises
        ------
        BnnvizError
            Always.
        """
        raise BnnvizError("This sampler has no events to pick.", "event")

    def current_point(self) -> Tensor:
        """Return the watched chain's position (dim,)."""
        return self.now

    def _path(self, plane: Plane) -> dict[str, Any]:
        points = self._projected(plane)
        nothing = np.empty(0)
        return {
            "plane": {"kind": plane.kind},
            "x_label": plane.labels[0],
            "y_label": plane.labels[1] if plane.axes is not None else "last move",
            "basis": plane.basis,
            "x": points[:, 0],
            "y": points[:, 1],
            "age": np.arange(len(points))[::-1] / max(len(points) - 1, 1),
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

    def _projected(self, plane: Plane) -> np.ndarray:
        """Return the points in the plane (n, 2); in a phase plane position against the move that led there."""
        x = torch.stack(list(self._points)).double().cpu().numpy()
        if plane.axes is None:
            return np.column_stack([x[:, 0], np.diff(x[:, 0], prepend=x[0, 0])])
        if plane.fold is not None:
            x = plane.fold(x)
        return (x - plane.centre) @ plane.axes

    def _caption(self) -> dict[str, Any]:
        step, info, chain = self._last
        return {"text": f"Move {step:,}: {self.sampler.caption(info, chain)}", "kind": "phase"}
