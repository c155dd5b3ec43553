"""Draw a small network with the weights of a chain now, and their standard deviations over the draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Drawing, Mark, Points, Segments
from bnnviz.figures.palette import Kind
from bnnviz.figures.ranges import extent

_UNIT = Kind("unit", "circle", "ink", False)
_BIASES = ((1, Kind("bias", "circle", "blue", True)), (-1, Kind("bias", "circle", "magenta", True)))
_WIDEST, _LEAST = 9.0, 0.4  # pixels of an edge
_SHARE = 0.5  # of the room between two units, for the widest edge
_UNIT_PX, _SMALLEST_PX = 15.0, 3.0
_DISC = 0.7  # of a unit, the largest bias
_FADES = 0.02  # of the largest size, a frame: the scale follows sizes that shrink
_NEAR_PX = 14.0
_SIDE = 0.35  # outside the outer layers, in layers
_FRAME = (500.0, 300.0)  # pixels, until the figure has been laid out


class NetworkGraph(Figure):
    """Draw weights as edges and biases as discs, as wide as they are large, over grey edges as wide as their sd."""

    name, title = "graph", "Network"
    needs = ("graph",)
    place = 9
    touch = {"cells": True, "hovers": True}
    y = Axis("", (-0.5, 0.5), "exact", shown=False, grid=False)

    def __init__(self) -> None:
        super().__init__()
        self.begin({})

    def begin(self, scene: dict[str, Any]) -> None:
        """Place the units of another network: a column for each layer, evenly spaced from the top."""
        super().begin(scene)
        self._part: dict[str, Any] | None = None
        self._shown: int | None = None  # the coordinate that the pointer has chosen
        self._largest = 0.0
        self._layers = list(scene.get("layers", ()))
        if not self._layers:
            return
        self._counts = [self._layers[0]["inputs"], *(layer["outputs"] for layer in self._layers)]
        heights = [(np.arange(n)[::-1] + 0.5) / n - 0.5 for n in self._counts]
        self._unit_x = np.repeat(np.arange(len(heights), dtype=float), self._counts)
        self._unit_y = np.concatenate(heights)
        edges, biases = [], []
        for i, layer in enumerate(self._layers):
            begin = np.tile(heights[i], layer["outputs"])
            rise = np.repeat(heights[i + 1], layer["inputs"]) - begin
            edges.append([np.full(len(begin), i), begin, rise, layer["weight"] + np.arange(len(begin))])
            if layer["bias"] is not None:
                at = np.full(layer["outputs"], i + 1)
                biases.append([at, heights[i + 1], layer["bias"] + np.arange(layer["outputs"])])
        # Of each edge and bias the place, and its coordinate.
        self._edge_x, self._edge_y, self._rise, self._edge_of = np.hstack(edges)
        self._bias_x, self._bias_y, self._bias_of = np.hstack([np.empty((3, 0)), *biases])
        self._edge_of, self._bias_of = self._edge_of.astype(int), self._bias_of.astype(int)

    def blank(self) -> Drawing:
        """Return the units without weights."""
        self._part = self._shown = None
        return self._drawing([], "")

    def choose(self, x: float, y: float) -> int | None:
        """Show the bias or the weight nearest to a place, and return its coordinate; None far from all."""
        self._shown = None
        if self._part is None:
            return None
        width, height = self.frame_size or _FRAME
        across, up = width / (len(self._layers) + 2 * _SIDE), height
        discs = np.hypot((self._bias_x - x) * across, (self._bias_y - y) * up)
        along = np.clip(x - self._edge_x, 0.0, 1.0)
        off = np.hypot((self._edge_x + along - x) * across, (self._edge_y + along * self._rise - y) * up)
        if discs.size and discs.min() < self._unit_px / 2:
            self._shown = int(self._bias_of[discs.argmin()])
        elif off.min() < _NEAR_PX:
            self._shown = int(self._edge_of[off.argmin()])
        return self._shown

    def leave(self) -> None:
        """Show the coordinate that is followed again: the pointer has left the figure."""
        self._shown = None

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``weights`` with their standard deviations ``sd`` over the draws."""
        self._part = part
        if not self._layers:
            return self.blank()
        weights, sd = np.asarray(part["weights"]), np.asarray(part["sd"])
        found = extent(np.abs(weights))
        # The scale grows immediately and shrinks slowly.
        self._largest = max(found[1] if found else 0.0, (1 - _FADES) * self._largest, 1e-12)
        edges = weights[self._edge_of]
        spread = self._edges(np.arange(len(edges)) if sd.size else [], sd[self._edge_of] if sd.size else np.empty(0))
        marks: list[Mark] = [Segments(*spread, colour="grey", opacity=0.3, label="sd over the draws")]
        for own, colour, label in ((edges >= 0, "blue", "positive"), (edges < 0, "magenta", "negative")):
            signed = self._edges(np.flatnonzero(own), np.abs(edges[own]))
            marks.append(Segments(*signed, colour=colour, opacity=0.85, label=label))
        number = self._shown if self._shown is not None else part["chosen"]
        edge = np.flatnonzero(self._edge_of == number) if number is not None else np.empty(0, int)
        marks.append(Segments(*self._ends(edge), 2.0, dash=(5, 4)))
        note = f"{part['draws']:,} draws"
        if number is not None:
            names = self.scene["names"]
            note = f"{names[number] if number < len(names) else number} {weights[number]:.2f}"
            note += f", draws {part['mean'][number]:.2f} ± {sd[number]:.2f}" if sd.size else ""
        return self._drawing(marks, note, weights[self._bias_of])

    def _drawing(self, marks: list[Mark], note: str, bias: np.ndarray | None = None) -> Drawing:
        x = replace(self.y, ends=(-_SIDE, max(len(self._layers), 1) + _SIDE))
        if self._layers:
            size = self._unit_px
            marks = [*marks, Points(self._unit_x, self._unit_y, _UNIT, size, min(1.6, size / 6), fill="surface")]
        if bias is not None:
            sizes = np.clip(np.abs(bias) / self._largest, 0.15, 1.0)
            for sign, kind in _BIASES:
                own = (bias < 0) == (sign < 0)
                at = self._bias_x[own], self._bias_y[own]
                marks.append(Points(*at, kind, _DISC * size, 0.0, scale=sizes[own], label=kind.label))
        words = f"layers of {', '.join(map(str, self._counts))} units; {note}" if self._layers else ""
        return self.drawing(marks, x=x, note=note, words=words)

    @property
    def _room(self) -> float:
        """Pixels from a unit to the next one of the widest layer."""
        return (self.frame_size or _FRAME)[1] / max(self._counts)

    @property
    def _unit_px(self) -> float:
        """Pixels of a unit, as large as there is room for."""
        return float(min(_UNIT_PX, max(_SMALLEST_PX, np.floor(0.8 * self._room))))

    def _ends(self, edges: Any) -> tuple[np.ndarray, ...]:
        x, y, rise = self._edge_x[edges], self._edge_y[edges], self._rise[edges]
        return x, y, np.ones_like(x), rise

    def _edges(self, edges: Any, sizes: np.ndarray) -> tuple[Any, ...]:
        """Return the ends of edges, the width 1, and their widths in pixels."""
        edges = np.asarray(edges, dtype=int)
        widest = min(_WIDEST, _SHARE * self._room + 1)
        return *self._ends(edges), 1.0, np.maximum(_LEAST, widest * sizes / self._largest)
