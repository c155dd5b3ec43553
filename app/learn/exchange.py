"""Exchange two hidden units of a network by hand: the function stays, the point in weight space moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import panel as pn

from bnnviz.views.base import View, columns, extent, separated
from bnnviz.views.canvas import Glyph, PackedColumns
from bnnviz.views.palette import Kind, legend, line_html, mark_html
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.components.widgets import button
from bnnviz_app.learn.piece import CONTROLS, LessonPiece

#: Of each hidden unit (a row): incoming weight, bias, outgoing weight. The last layer's bias is apart.
START = np.array([[2.6, 1.5, 1.1], [-1.2, 0.4, 1.7], [3.4, -2.2, -0.8], [0.7, 0.1, 1.4]])
OFFSET = -0.3
UNITS = "abcd"
GRID = np.linspace(-2.0, 2.0, 161)
_WIDEST = 7.0  # pixels of the heaviest edge
_NODE = Kind("unit", "circle", "ink", True)
_NAME_FONT = "600 13px Roboto, sans-serif"
_HERE = Kind("now", "circle", "orange", True)
_VISITED = Kind("before", "circle", "grey", False)


def outputs(units: np.ndarray, x: np.ndarray = GRID) -> np.ndarray:
    """Return the network's function: the sum of its tanh units, and the offset.

    Parameters
    ----------
    units : ndarray, shape (units, 3)
    x : ndarray, shape (points,)
    """
    incoming, bias, outgoing = units.T
    return np.tanh(np.outer(x, incoming) + bias) @ outgoing + OFFSET


def exchanged(units: np.ndarray, first: int, second: int) -> np.ndarray:
    """Return the units with two of them in each other's place."""
    order = np.arange(len(units))
    order[[first, second]] = second, first
    return units[order]


def turned(units: np.ndarray, which: int) -> np.ndarray:
    """Return the units with all three weights of one of them in the other sign; tanh is odd."""
    signs = np.ones((len(units), 1))
    signs[which] = -1.0
    return units * signs


def _small(number: float) -> str:
    """Write a number that may be nothing but rounding."""
    return f"{number:.0e}" if number else "0"


class GraphView(View):
    """Draw the network: an edge is as wide as its weight is large, and its colour is the sign."""

    name = "graph"
    title = "The network"
    needs = ("graph",)

    def _build(self) -> None:
        fig = self._figure("", "", (-0.35, 2.35), (-0.6, 3.6))
        fig.axis.visible = False
        fig.grid.visible = False
        self._edges: list[Glyph] = []
        self._ends: list[PackedColumns] = []
        for _ in range(3 * len(UNITS)):
            ends = PackedColumns(("x", "y"))
            self._ends.append(ends)
            self._edges.append(self.canvas.line(ends, "x", "y"))
        self._nodes = PackedColumns(("x", "y"))
        self._coloured(self.canvas.marks(self._nodes, "x", "y", _NODE, 30), _NODE)
        self._names = []
        for name in ("x", "1", *UNITS, "f(x)"):
            place = PackedColumns(("x", "y"))
            self._names.append(place)
            # On its node: beside it edges run.
            words = self.canvas.words(place, "x", "y", text=name, font=_NAME_FONT, centred=True)
            self._coloured(words, role="surface")

    def reset(self, scene: dict) -> None:
        """Draw nothing until the first frame."""

    def theme(self, dark: bool) -> None:
        """Change every colour in place, those of the signs too."""
        super().theme(dark)
        self._dye()

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        signs = (("positive", p.blue), ("negative", p.red))
        return legend(*(line_html(sign, colour, p, width=4) for sign, colour in signs))

    def _show(self, part: dict) -> bool:
        units, order = part["units"], part["order"]
        heights = np.arange(len(units))[::-1].astype(float)
        self._weights = np.concatenate(units)
        inputs = ((0.0, 2.2), (0.0, 0.8))
        for place, height in enumerate(heights):
            ends = [(inputs[0], (1.0, height)), (inputs[1], (1.0, height)), ((1.0, height), (2.0, 1.5))]
            for which, (begin, end) in enumerate(ends):
                self._push(self._ends[3 * place + which], columns(x=[begin[0], end[0]], y=[begin[1], end[1]]))
        self._push(self._nodes, columns(x=[0, 0, 1, 1, 1, 1, 2], y=[2.2, 0.8, *heights, 1.5]))
        named = [*inputs, *((1.0, 0.0),) * len(units), (2.0, 1.5)]
        for place, unit in enumerate(order):
            named[2 + unit] = (1.0, heights[place])
        for words, (x, y) in zip(self._names, named, strict=True):
            self._push(words, columns(x=[x], y=[y]))
        self._dye()
        return True

    def _dye(self) -> None:
        """Give each edge its width and the colour of its sign."""
        for edge, weight in zip(self._edges, getattr(self, "_weights", ()), strict=False):
            colour = self.palette.blue if weight >= 0 else self.palette.red
            edge.update(colour=colour, width=float(0.6 + _WIDEST * abs(weight) / np.abs(START).max()))
        self.canvas.publish()

    def _words(self) -> str:
        return f"{len(UNITS)} hidden units"


class FunctionView(View):
    """Draw the function as it was at first, and as it is now."""

    name = "function"
    title = "Its function"
    needs = ("function",)

    def _build(self) -> None:
        self._figure("x", "f(x)", (GRID[0], GRID[-1]), (-5.0, 5.0))
        self._first, self._now = PackedColumns(("x", "y")), PackedColumns(("x", "y"))
        self._coloured(self.canvas.line(self._first, "x", "y", width=8, opacity=0.35), role="orange")
        self._coloured(self.canvas.line(self._now, "x", "y", width=2), role="blue")

    def reset(self, scene: dict) -> None:
        """Draw the function as it is at first."""
        first = outputs(START)
        low, high = extent(first)
        self.root.y_range.update(start=low - 0.6, end=high + 0.6)
        self._push(self._first, columns(x=GRID, y=first))

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        return legend(line_html("at first", p.orange, p, width=7), line_html("now", p.blue, p))

    def _show(self, part: dict) -> bool:
        self.note = f"largest difference {_small(np.abs(part['y'] - outputs(START)).max())}"
        return self._push(self._now, columns(x=GRID, y=part["y"]))


class WeightPlaneView(View):
    """Draw where the network is in two coordinates of weight space, and where it has been."""

    name = "weight_plane"
    title = "Weight space"
    needs = ("weight_plane",)

    def _build(self) -> None:
        self._figure("weight into place 1", "weight into place 2", (-4.2, 4.2), (-4.2, 4.2))
        self._diagonal, self._been, self._way, self._here = (PackedColumns(("x", "y")) for _ in range(4))
        self._coloured(self.canvas.line(self._diagonal, "x", "y", width=1.2, dash=(5, 4)), role="axis")
        self._coloured(self.canvas.line(self._way, "x", "y", width=1.6), role="grey")
        self._coloured(self.canvas.marks(self._been, "x", "y", _VISITED, 9), _VISITED)
        self._coloured(self.canvas.marks(self._here, "x", "y", _HERE, 13), _HERE)

    def reset(self, scene: dict) -> None:
        """Draw the diagonal, in which an exchange mirrors."""
        self._push(self._diagonal, columns(x=[-4.2, 4.2], y=[-4.2, 4.2]))

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        marks = mark_html(_HERE, p, "now"), mark_html(_VISITED, p, "before")
        return legend(*marks, line_html("mirror", p.axis, p, dash="5 4"))

    def _show(self, part: dict) -> bool:
        x, y = part["x"], part["y"]
        self.note = f"moved by {part['distance']:.2f} in all"
        self._push(self._way, columns(x=separated(x[:-1], x[1:]), y=separated(y[:-1], y[1:])))
        self._push(self._been, columns(x=x[:-1], y=y[:-1]))
        return self._push(self._here, columns(x=x[-1:], y=y[-1:]))


class ExchangePiece(LessonPiece):
    """Let a reader exchange two units of a network and turn one's sign."""

    grid = '"graph graph" minmax(0, 1.15fr) "function weight_plane" minmax(0, 1fr) / minmax(0, 1fr) minmax(0, 1fr)'

    def __init__(self, dark: bool) -> None:
        look = {"variant": "outlined", "margin": (2, 4)}
        a, b, c, _ = UNITS
        first = button(f"Exchange {a} and {b}", lambda: self.exchange(0, 1), **look)
        second = button(f"Exchange {a} and {c}", lambda: self.exchange(0, 2), **look)
        sign = button(f"Turn {a}'s sign", lambda: self.turn(0), **look)
        back = button("Back", self.begin, margin=(2, 4))
        tools = pn.FlexBox(first, second, sign, back, sizing_mode="stretch_width", margin=(2, 8), styles=CONTROLS)
        graph = Card(GraphView(dark=dark), long_legend=True, below=[tools])
        self.cards = {"graph": graph, "function": Card(FunctionView(dark=dark), long_legend=True)}
        self.cards["weight_plane"] = Card(WeightPlaneView(dark=dark), long_legend=True)
        self.begin()

    def begin(self) -> None:
        """Take the weights of the beginning."""
        self.units, self._order = START.copy(), list(range(len(START)))
        self._visited = [self.units]
        super().begin()

    def exchange(self, first: int, second: int) -> None:
        """Exchange two units, wherever they stand."""
        places = self._order.index(first), self._order.index(second)
        self._order[places[0]], self._order[places[1]] = second, first
        self._move(exchanged(self.units, *places))

    def turn(self, unit: int) -> None:
        """Turn the sign of a unit's weights, wherever it stands."""
        self._move(turned(self.units, self._order.index(unit)))

    def frame(self) -> dict[str, Any]:
        """Return what the views show."""
        visited = np.array(self._visited)
        return {
            "graph": {"units": self.units, "order": list(self._order)},
            "function": {"y": outputs(self.units)},
            "weight_plane": {
                "x": visited[:, 0, 0],
                "y": visited[:, 1, 0],
                "distance": float(np.linalg.norm(self.units - START)),
            },
        }

    def _move(self, units: np.ndarray) -> None:
        self.units = units
        self._visited.append(units)
        self.paint()
