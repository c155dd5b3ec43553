"""Look at chains that began at copies of the same weights: in one weight, in one order, and in the function at an x."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import panel_material_ui as pmui

from bnnviz.views.base import View, columns, extent, gapped_curves
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import Kind, legend, line_html, mark_html
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.learn import small_posterior
from bnnviz_app.learn.exchange import GRID, OFFSET, START
from bnnviz_app.learn.piece import CONTROLS, LessonPiece
from bnnviz_app.learn.small_posterior import CHAINS, DRAWS

_DATA = Kind("data", "circle", "red", False)
_EVERY = 10  # of a chain's draws, one function is drawn
_NUMBER = np.arange(1, DRAWS + 1)


@functools.cache
def functions() -> np.ndarray:
    """Return the functions (chains, draws, points of the grid) of all draws."""
    incoming, bias, outgoing = np.moveaxis(small_posterior.draws(), 3, 0)
    found = np.full((CHAINS, DRAWS, len(GRID)), OFFSET)
    for unit in range(incoming.shape[2]):
        inner = incoming[:, :, unit, None] * GRID + bias[:, :, unit, None]
        found += outgoing[:, :, unit, None] * np.tanh(inner)
    return found


def weights() -> np.ndarray:
    """Return the weight from the input into the first place (chains, draws)."""
    return small_posterior.draws()[:, :, 0, 0]


@functools.cache
def ordered_weights() -> np.ndarray:
    """Return the same of draws whose hidden units are in one order, with one sign."""
    from bnnviz import diagnostics

    flat, reference = small_posterior.flat(small_posterior.draws()), small_posterior.flat(START)
    return diagnostics.canonical(flat, small_posterior.LAYERS, reference=reference)[:, :, 0]


def agreement(values: np.ndarray) -> float:
    """Return R-hat of (chains, draws)."""
    from bnnviz import diagnostics

    return diagnostics.rhat(values)


class ChainsView(View):
    """Draw the trace of each chain, and say whether they agree; a class says of what.

    Subclasses share one part of a frame each: values (chains, draws) and a label.
    """

    def _build(self) -> None:
        self._figure("draw", "", (0.0, DRAWS + 1.0), (-1.0, 1.0))
        self._columns = [PackedColumns(("x", "y")) for _ in range(CHAINS)]
        self._lines = [self.canvas.line(held, "x", "y", width=1.3) for held in self._columns]

    def reset(self, scene: dict) -> None:
        """Draw nothing until the first frame."""

    def theme(self, dark: bool) -> None:
        """Change every colour in place, those of the chains too."""
        super().theme(dark)
        for line, colour in zip(self._lines, self.palette.chains, strict=False):
            line.update(colour=colour)
        self.canvas.publish()

    def _show(self, part: dict) -> bool:
        values = part["values"]
        low, high = extent(values)
        room = 0.06 * (high - low)
        self.root.y_range.update(start=low - room, end=high + room)
        self.note = f"R-hat {agreement(values):.2f}"
        self.y_label = part["label"]
        for held, row in zip(self._columns, values, strict=True):
            self._push(held, columns(x=_NUMBER, y=row))
        return True


class RawWeightView(ChainsView):
    """Draw one weight as the chains have it."""

    name, needs = "raw_weight", ("raw_weight",)
    title = "A weight"


class OrderedWeightView(ChainsView):
    """Draw the same weight once the units of every draw are in one order."""

    name, needs = "ordered_weight", ("ordered_weight",)
    title = "In one order"


class ValueView(ChainsView):
    """Draw the function at one x."""

    name, needs = "value", ("value",)
    title = "The function at x"


class ChainFunctionsView(View):
    """Draw a few functions of each chain, and where the chosen x is."""

    name, needs = "chain_functions", ("chain_functions",)
    title = "Functions of four chains"

    def _build(self) -> None:
        self._figure("x", "f(x)", (GRID[0], GRID[-1]), (-1.0, 1.0))
        self._columns = [PackedColumns(("x", "y")) for _ in range(CHAINS)]
        self._lines = [self.canvas.line(held, "x", "y", width=1.0, opacity=0.35) for held in self._columns]
        self._here, self._data = PackedColumns(("x", "y")), PackedColumns(("x", "y"))
        self._coloured(self.canvas.line(self._here, "x", "y", width=2, dash=(5, 4)), role="ink")
        self._coloured(self.canvas.marks(self._data, "x", "y", _DATA, 7), _DATA)

    def reset(self, scene: dict) -> None:
        """Draw the data, and the functions, which stay."""
        x, y = small_posterior.data()
        self._push(self._data, columns(x=x, y=y))
        drawn = functions()[:, ::_EVERY]
        low, high = extent(drawn)
        self.root.y_range.update(start=low - 0.2, end=high + 0.2)
        for held, curves in zip(self._columns, drawn, strict=True):
            self._push(held, gapped_curves(GRID, curves))

    def theme(self, dark: bool) -> None:
        """Change every colour in place, those of the chains too."""
        super().theme(dark)
        for line, colour in zip(self._lines, self.palette.chains, strict=False):
            line.update(colour=colour)
        self.canvas.publish()

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        chains = [line_html(f"chain {i + 1}", p.chains[i], p) for i in range(CHAINS)]
        return legend(*chains, mark_html(_DATA, p, "data"), line_html("x", p.ink, p, dash="5 4"))

    def _show(self, part: dict) -> bool:
        y = [self.root.y_range.start, self.root.y_range.end]
        self.note = f"x = {part['x']:.2f}"
        return self._push(self._here, columns(x=[part["x"]] * 2, y=y))


class CopiesPiece(LessonPiece):
    """Let a reader choose the x at which the function is followed."""

    grid = (
        '"raw_weight ordered_weight" minmax(0, 1fr) "chain_functions value" minmax(0, 1.2fr)'
        " / minmax(0, 1fr) minmax(0, 1fr)"
    )

    def __init__(self, dark: bool) -> None:
        self.place = pmui.FloatSlider(
            label="x",
            start=float(GRID[0]),
            end=float(GRID[-1]),
            step=0.05,
            value=0.0,
            format="0.00",
            sizing_mode="stretch_width",
            margin=(2, 18),
            size="small",
            styles=CONTROLS,
        )
        self.place.param.watch(lambda event: self.paint(), "value")
        made = [RawWeightView(dark=dark), OrderedWeightView(dark=dark), ValueView(dark=dark)]
        self.cards = {view.needs[0]: Card(view, long_legend=True) for view in made}
        self.cards["chain_functions"] = Card(ChainFunctionsView(dark=dark), long_legend=True, below=[self.place])
        self.begin()

    @classmethod
    def prepared(cls) -> bool:
        """Tell whether the chains have been sampled."""
        return ordered_weights.cache_info().currsize > 0

    @classmethod
    def prepare(cls) -> None:
        """Sample the chains, and import what measures them."""
        functions()
        agreement(weights())
        ordered_weights()

    def begin(self) -> None:
        """Take the slider back to where it was."""
        self.place.value = 0.0
        super().begin()

    def frame(self) -> dict[str, Any]:
        """Return what the views show."""
        x = float(self.place.value)
        nearest = int(np.abs(GRID - x).argmin())
        label = "weight into place 1"
        return {
            "raw_weight": {"values": weights(), "label": label},
            "ordered_weight": {"values": ordered_weights(), "label": label},
            "value": {"values": functions()[:, :, nearest], "label": f"f({x:.2f})"},
            "chain_functions": {"x": x},
        }
