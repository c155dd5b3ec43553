"""Select an event, or the draws in a box, which all views mark."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.engine.evaluation.predictions import Predictor, chosen_draws, evenly, weights
from bnnviz.engine.monitor.components import Component
from bnnviz.engine.protocol import AnyRun
from bnnviz.errors import BnnvizError
from bnnviz.samplers.observers import Projection

VIEWS = ("prediction", "path", "trace")
_MOST = 400
_FUNCTIONS = 40
Key = tuple[int, int]
NOTHING: dict[str, Any] = {"kind": "none"}


class Selection:
    """The selected draws or event of one run; a draw is identified by its chain and number."""

    def __init__(self, run: AnyRun) -> None:
        self._run = run
        self.clear()

    def clear(self) -> None:
        """Clear the selection."""
        self._view: str | None = None
        self._box: tuple[float, ...] = ()
        self._keys: list[Key] = []
        self._plane: Projection | None = None  # of the box
        self._key: tuple = ()  # of the component followed at that time
        self._found = False
        self._event: tuple[int, str, Tensor] | None = None

    def choose(self, choice: dict[str, Any] | None, plane: Projection, followed: tuple) -> None:
        """Select as in `ViewedRun.select`, with the current ``plane`` and the key of the followed quantity."""
        event, view, box = ((choice or {}).get(name) for name in ("event", "view", "box"))
        if choice is not None and event is None:
            if view not in VIEWS:
                raise BnnvizError(
                    f"There is no view {view!r} to pick draws in; choose one of {', '.join(VIEWS)}.", "view"
                )
            numbers = isinstance(box, list | tuple) and len(box) == 4
            if not numbers or not all(isinstance(n, int | float) and math.isfinite(n) for n in box):
                raise BnnvizError(f"A box is four numbers x0, x1, y0, y1, not {box!r}.", "box")
        self.clear()
        if event is not None:
            self._event = self._run.chain_trace.event(event)
        elif choice is not None:
            x0, x1, y0, y1 = map(float, box)
            self._view, self._box = view, (min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1))
            self._plane, self._key = plane, followed

    def part(self, plane: Projection, component: Component, predictor: Predictor | None) -> dict[str, Any]:
        """Return the part of a frame."""
        if self._event is None and self._view is None:
            return NOTHING
        known = [] if self._event is not None else chosen_draws(self._run.store, self._run.alive, _MOST)
        places = projected(weights(self._run.store, known), plane) if known else np.empty((0, 2))
        keys: list[Key] = []
        if self._event is not None:
            _, text, point = self._event
            points, shown = projected(point[None], plane), point[None]
            found = {"kind": "event", "count": 1, "text": text}
        else:
            self._find(known, component, predictor)
            place = {key: i for i, key in enumerate(known)}
            keys = [key for key in self._keys if key in place]
            points = places[[place[key] for key in keys]].reshape(-1, 2)
            shown = weights(self._run.store, [keys[i] for i in evenly(len(keys), _FUNCTIONS)]) if keys else None
            text = f"{len(keys)} of {len(known)} draws"
            found = {"kind": "draws", "count": len(keys), "of": len(known), "text": text}
        return found | {
            "path_x": points[:, 0],
            "path_y": points[:, 1],
            "known_x": places[:, 0],
            "known_y": places[:, 1],
            "trace_index": np.array([number for _, number in keys], dtype=float),
            "trace_value": np.array([self._on_trace(key, component.values) for key in keys], dtype=float),
            **({} if predictor is None or shown is None else {"functions": predictor.functions(shown)}),
        }

    def _find(self, known: list[Key], component: Component, predictor: Predictor | None) -> None:
        """Find the draws in the box; for a trace of another quantity keep the found ones."""
        if self._view == "prediction":
            self._keys = [] if predictor is None else predictor.through(self._box)
            return
        if self._view == "path":
            places = projected(weights(self._run.store, known), self._plane) if known else np.empty((0, 2))
            x, y = places.T
        elif self._found and component.key != self._key:
            return
        else:
            x = np.array([number for _, number in known], dtype=float)
            y = np.array([self._on_trace(key, component.values) for key in known], dtype=float)
        x0, x1, y0, y1 = self._box
        inside = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
        self._found = True
        self._keys = [key for key, chosen in zip(known, inside, strict=True) if chosen]

    def _on_trace(self, key: Key, component: np.ndarray) -> float:
        chain, number = key
        row, column = int(self._run.alive[:chain].sum()), number // self._run.store.every
        return float(component[row, column]) if column < component.shape[1] else math.nan


def projected(points: Tensor, plane: Projection) -> np.ndarray:
    """Return the coordinates (n, 2) of points in a plane; a phase plane has no velocity for a draw."""
    if plane.axes is None:
        x = points[:, 0].double().cpu().numpy()
        return np.stack([x, np.zeros_like(x)], axis=1)
    if plane.canonicalise is not None:
        return (plane.canonicalise(points.double().cpu().numpy()) - plane.centre) @ plane.axes
    axes = torch.as_tensor(plane.axes, device=points.device)
    return (points.double() @ axes).cpu().numpy() - plane.centre @ plane.axes
