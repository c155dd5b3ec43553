"""Draw a small network with the weights that a chain is at now, and how far the draws spread around theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.views.base import View, columns, extent
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import Kind, legend, line_html, mark_html
from bnnviz.views.pointer import Pointer

_UNIT, _BIAS = Kind("unit", "circle", "ink", False), Kind("bias", "circle", "muted", True)
_WIDEST, _LEAST = 9.0, 0.4  # pixels of an edge
_SHARE = 0.5  # of the room between two units, for the widest edge
_UNIT_PX, _SMALLEST_PX = 15.0, 3.0
_DISC = 0.7  # of a unit, the largest bias
_FADES = 0.02  # of the largest size, a frame: the scale follows sizes that shrink
_NEAR_PX = 14.0
_SIDE = 0.35  # beside the outer layers, in layers
_FRAME = (500.0, 300.0)  # pixels, until the figure has been laid out


class NetworkGraphView(View):
    """Draw units as circles and weights as edges, as wide as they are large; a biased unit holds a disc of that size.

    A grey edge beneath is as wide as the standard deviation of that weight over the draws: a coloured edge that is
    narrower than its grey one has a sign that the data leave open.
    """

    name = "graph"
    title = "Network"
    needs = ("graph",)

    def _build(self) -> None:
        fig = self._figure("", "", (-_SIDE, 1 + _SIDE), (-0.5, 0.5))
        fig.axis.visible = False
        fig.grid.visible = False
        fig.update(min_border_left=4, min_border_right=4)
        self._layers: list[dict[str, Any]] = []
        self._names: list[str] = []
        self._forget()
        ends = ("x", "y", "dx", "dy")
        self.spread, self.edges = PackedColumns((*ends, "width")), PackedColumns((*ends, "width", "sign"))
        self.chosen, self.units = PackedColumns(ends), PackedColumns(("x", "y"))
        self.biases = PackedColumns(("x", "y", "size", "sign"))
        at = ("x", "y", "dx", "dy")
        self._spread = self._coloured(self.canvas.segments(self.spread, *at, scale="width"), role="grey")
        self._spread.update(opacity=0.3)
        for sign, role in ((1, "blue"), (-1, "orange")):
            edge = self.canvas.segments(self.edges, *at, scale="width", of="sign", code=sign)
            edge.update(opacity=0.85)
            self._coloured(edge, role=role)
        self._coloured(self.canvas.segments(self.chosen, *at, width=2.0, dash=(5, 4)), role="ink")
        self._circle = self.canvas.marks(self.units, "x", "y", _UNIT, _UNIT_PX)
        self._paint(self._circle, colour="ink", fill="surface")
        self._discs = []
        for sign, role in ((1, "blue"), (-1, "orange")):
            look = {"width": 0.0, "scale": "size", "of": "sign", "code": sign}
            self._discs.append(self.canvas.marks(self.biases, "x", "y", _BIAS, _DISC * _UNIT_PX, **look))
            self._paint(self._discs[-1], colour=role, fill=role)
        self.pointer = Pointer(fig, cells=True, hovers=True)

    def reset(self, scene: dict) -> None:
        """Place the units of another network, and forget the last one's weights."""
        self._layers, self._names = list(scene.get("layers", ())), list(scene["names"])
        self.note = ""
        self._forget()
        self._empty(self.spread, self.edges, self.chosen, self.biases)
        if not self._layers:
            self._empty(self.units)
            return
        self._place()
        self._fit_units()
        self.root.x_range.update(start=-_SIDE, end=len(self._layers) + _SIDE)
        self._push(self.units, columns(x=self._unit_x, y=self._unit_y))

    def forget(self) -> None:
        """Take the spread of earlier draws away."""
        self._empty(self.spread)

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        return legend(
            line_html("positive", p.blue, p, width=4),
            line_html("negative", p.orange, p, width=4),
            line_html("sd over the draws", p.grey, p, width=7),
            mark_html(_BIAS, p, "bias"),
        )

    def choose(self, x: float, y: float) -> int | None:
        """Tell the weight or the bias nearest to a place, and return its coordinate; None far from all."""
        if self._part is None:
            return None
        self._told = self._nearest(x, y)
        self._mark()
        return self._told

    def hover(self, x: float, y: float) -> bool:
        """Tell the weight or the bias nearest to a place; return whether that is another one than before."""
        before = self._told
        self.choose(x, y)
        return self._told != before

    def leave(self) -> None:
        """Tell what is followed again: the pointer has left the figure."""
        self._told = None
        if self._part is not None:
            self._mark()

    def _forget(self) -> None:
        self._part: dict[str, Any] | None = None
        self._told: int | None = None  # the coordinate that the heading tells
        self._largest = 0.0

    def _place(self) -> None:
        """Give each unit its place: a column for each layer, its units evenly from the top."""
        counts = [self._layers[0]["inputs"], *(layer["outputs"] for layer in self._layers)]
        heights = [(np.arange(n)[::-1] + 0.5) / n - 0.5 for n in counts]
        self._crowd = max(counts)
        self._unit_x = np.concatenate([np.full(n, float(i)) for i, n in enumerate(counts)])
        self._unit_y = np.concatenate(heights)
        begin = [np.tile(heights[i], layer["outputs"]) for i, layer in enumerate(self._layers)]
        end = [np.repeat(heights[i + 1], layer["inputs"]) for i, layer in enumerate(self._layers)]
        self._edge_x = np.concatenate([np.full(len(y), float(i)) for i, y in enumerate(begin)])
        self._edge_y = np.concatenate(begin)
        self._rise = np.concatenate(end) - self._edge_y
        self._edge_of = np.concatenate(
            [layer["weight"] + np.arange(layer["inputs"] * layer["outputs"]) for layer in self._layers]
        )
        biased = [(i, layer) for i, layer in enumerate(self._layers) if layer["bias"] is not None]
        self._bias_x = np.concatenate([np.full(layer["outputs"], i + 1.0) for i, layer in biased] or [np.empty(0)])
        self._bias_y = np.concatenate([heights[i + 1] for i, _ in biased] or [np.empty(0)])
        numbers = [layer["bias"] + np.arange(layer["outputs"]) for _, layer in biased]
        self._bias_of = np.concatenate(numbers or [np.empty(0, int)])

    def _show(self, part: dict) -> bool:
        if not self._layers:
            return False
        self._part = part
        weights, sd = np.asarray(part["weights"]), np.asarray(part["sd"])
        self._fit_units()
        self._rescale(weights)
        moved = self._push(self.edges, self._ends() | columns(**self._stroke(weights)))
        if sd.size:
            moved = self._push(self.spread, self._ends() | columns(width=self._width(sd[self._edge_of]))) or moved
        bias = weights[self._bias_of]
        size = np.clip(np.abs(bias) / self._largest, 0.15, 1.0)
        discs = columns(x=self._bias_x, y=self._bias_y, size=size, sign=np.where(bias < 0, -1, 1))
        moved = self._push(self.biases, discs) or moved
        return self._mark() or moved

    @property
    def _room(self) -> float:
        """Pixels from a unit to the next one of the widest layer."""
        return (self.frame_size or _FRAME)[1] / self._crowd

    def _fit_units(self) -> None:
        """Draw units as large as there is room for."""
        size = min(_UNIT_PX, max(_SMALLEST_PX, np.floor(0.8 * self._room)))
        if size != self._circle.size:
            self._circle.update(size=size, width=min(1.6, size / 6))
            for disc in self._discs:
                disc.update(size=_DISC * size)
            self.canvas.publish()

    def _rescale(self, weights: np.ndarray) -> None:
        """Let the widest edge be that of the largest weight; the scale grows at once and shrinks slowly."""
        found = extent(np.abs(weights))
        largest = found[1] if found else 0.0
        self._largest = max(largest, (1 - _FADES) * self._largest, 1e-12)

    def _ends(self) -> dict[str, np.ndarray]:
        across = np.ones_like(self._edge_x)
        return columns(x=self._edge_x, y=self._edge_y, dx=across, dy=self._rise)

    def _stroke(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        on_edges = weights[self._edge_of]
        return {"width": self._width(np.abs(on_edges)), "sign": np.where(on_edges < 0, -1, 1)}

    def _width(self, sizes: np.ndarray) -> np.ndarray:
        """Return widths in pixels."""
        return np.maximum(_LEAST, min(_WIDEST, _SHARE * self._room + 1) * sizes / self._largest)

    def _nearest(self, x: float, y: float) -> int | None:
        """Return the coordinate of the bias, or else of the edge, nearest on the screen; None far from all."""
        width, height = self.frame_size or _FRAME
        across = width / (self.root.x_range.end - self.root.x_range.start)
        up = height / (self.root.y_range.end - self.root.y_range.start)
        discs = np.hypot((self._bias_x - x) * across, (self._bias_y - y) * up)
        if discs.size and discs.min() < self._circle.size / 2:
            return int(self._bias_of[discs.argmin()])
        along = np.clip(x - self._edge_x, 0.0, 1.0)
        off = np.hypot((self._edge_x + along - x) * across, (self._edge_y + along * self._rise - y) * up)
        return int(self._edge_of[off.argmin()]) if off.min() < _NEAR_PX else None

    def _mark(self) -> bool:
        """Dash the edge that is told, or else the one that is followed, and tell its figures."""
        part = self._part
        number = self._told if self._told is not None else part["chosen"]
        edge = np.flatnonzero(self._edge_of == number) if number is not None else np.empty(0, int)
        self.note = f"{part['draws']:,} draws" if number is None else self._text(number)
        return self._push(self.chosen, {name: values[edge] for name, values in self._ends().items()})

    def _words(self) -> str:
        counts = [layer["outputs"] for layer in self._layers]
        return (
            f"layers of {', '.join(map(str, [self._layers[0]['inputs'], *counts]))} units; {self.note}"
            if counts
            else ""
        )

    def _text(self, number: int) -> str:
        """Return a weight's name, its value now, and its mean and spread over the draws."""
        part = self._part
        name = self._names[number] if number < len(self._names) else str(number)
        now = f"{name} {part['weights'][number]:.2f}"
        return f"{now}, draws {part['mean'][number]:.2f} ± {part['sd'][number]:.2f}" if len(part["sd"]) else now
