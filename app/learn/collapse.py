"""Watch importance weights collapse as the dimension grows, beside what they do in closed form.

Target and proposal are centred normals in d dimensions, the proposal s times as wide. Then E[w] = 1 and, for
2 s^2 > 1, E[w^2] = (s^2 / sqrt(2 s^2 - 1))^d, so that N draws are worth about N (sqrt(2 s^2 - 1) / s^2)^d.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from bnnviz.views.base import View, columns
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import Kind, legend, line_html, mark_html
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.learn.piece import CONTROLS, LessonPiece

DRAWS, MOST = 10_000, 100
_SHOWN = 40  # of the largest weights
_LOWEST = 0.0005  # end of the axis of shares: 10,000 equal weights fill a fifth of it
_DOT = Kind("draws", "dot", "orange", True)
_NOW = Kind("d", "circle", "orange", False)


def expected(dimension: np.ndarray | float, width: float, draws: int = DRAWS) -> np.ndarray:
    """Return how many draws the weighted ones are worth, in closed form."""
    share = np.sqrt(2 * width**2 - 1) / width**2
    return draws * share ** np.asarray(dimension, dtype=float)


@functools.cache
def _squares() -> np.ndarray:
    """Return the squared lengths (dimensions, draws) of the first d coordinates of standard normal draws."""
    normal = np.random.default_rng(1).standard_normal((MOST, DRAWS), dtype=np.float32)
    return np.cumsum(normal**2, axis=0)


def weights(dimension: int, width: float) -> np.ndarray:
    """Return the weights (draws,) of draws of the proposal, of sum 1."""
    logarithm = -0.5 * (width**2 - 1) * _squares()[dimension - 1].astype(float)
    shifted = np.exp(logarithm - logarithm.max())
    return shifted / shifted.sum()


def measured(width: float) -> np.ndarray:
    """Return how many draws the weighted ones are worth, in 1 to `MOST` dimensions."""
    return np.array([1 / np.sum(weights(dimension, width) ** 2) for dimension in range(1, MOST + 1)])


def _percent(share: float) -> str:
    """Write a share in percent, a small one with a digit more."""
    return f"{100 * share:.1f}" if share >= 0.001 else f"{100 * share:.2f}"


def _worth(draws: float) -> str:
    """Write a number of draws, a small one with a digit more."""
    return f"{draws:,.0f}" if draws >= 10 else f"{draws:.1f}"


class CollapseView(View):
    """Draw the effective sample size against the dimension: of the draws, and in closed form."""

    name = "collapse"
    title = "Effective sample size"
    needs = ("collapse",)

    def _build(self) -> None:
        self._figure("dimension d", "log10 of the ESS", (0.0, MOST + 2.0), (-2.0, 4.3))
        self._curve, self._dots, self._one, self._here = (PackedColumns(("x", "y")) for _ in range(4))
        self._coloured(self.canvas.line(self._one, "x", "y", width=1.2, dash=(5, 4)), role="axis")
        self._coloured(self.canvas.line(self._curve, "x", "y", width=2.4), role="blue")
        self._coloured(self.canvas.marks(self._dots, "x", "y", _DOT, 5), _DOT)
        self._coloured(self.canvas.marks(self._here, "x", "y", _NOW, 13, width=2.4), _NOW)

    def reset(self, scene: dict) -> None:
        """Draw where one draw is left."""
        self._push(self._one, columns(x=[0, MOST + 2], y=[0, 0]))

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        curve, one = line_html("closed form", p.blue, p), line_html("one draw", p.axis, p, dash="5 4")
        return legend(curve, mark_html(_DOT, p, "of the draws"), mark_html(_NOW, p, "at d"), one)

    def _show(self, part: dict) -> bool:
        number = np.arange(1, MOST + 1)
        ess, known = part["measured"][part["dimension"] - 1], float(expected(part["dimension"], part["width"]))
        draws, exact = (_worth(worth) for worth in (ess, known))
        self.note = f"d = {part['dimension']}: {draws} draws, exact {exact}"
        self._push(self._curve, columns(x=number, y=np.log10(expected(number, part["width"]))))
        self._push(self._here, columns(x=[part["dimension"]], y=[np.log10(ess)]))
        return self._push(self._dots, columns(x=number, y=np.log10(part["measured"])))


class LargestView(View):
    """Draw the largest weights as shares of their sum."""

    name = "largest"
    title = f"The {_SHOWN} largest weights"
    needs = ("largest",)

    def _build(self) -> None:
        self._figure("weight, by rank", "share of the sum", (0.0, _SHOWN + 1.0), (0.0, 1.0))
        self._bars = PackedColumns(("x", "y"))
        self._coloured(self.canvas.bars(self._bars, "x", "y", width=0.8), role="orange")

    def reset(self, scene: dict) -> None:
        """Draw nothing until the first frame."""

    def _show(self, part: dict) -> bool:
        share = part["share"]
        self.root.y_range.update(end=float(min(1.0, max(_LOWEST, 1.2 * share[0]))))
        largest, together = (_percent(part) for part in (share[0], share.sum()))
        self.note = f"largest {largest} %, together {together} %"
        return self._push(self._bars, columns(x=np.arange(1, len(share) + 1), y=share))


class CollapsePiece(LessonPiece):
    """Let a reader choose the dimension, and how wide the proposal is."""

    grid = '"collapse" minmax(0, 1.3fr) "largest" minmax(0, 1fr) / minmax(0, 1fr)'

    def __init__(self, dark: bool) -> None:
        look: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (2, 14), "size": "small"}
        self.dimension = pmui.IntSlider(label="Dimension d", start=1, end=MOST, value=2, **look)
        look["format"] = "0.00"
        self.width = pmui.FloatSlider(label="Width s of the proposal", start=0.8, end=2.0, step=0.05, value=1.3, **look)
        for slider in (self.dimension, self.width):
            slider.param.watch(lambda event: self.paint(), "value")
        sliders = pn.Row(self.dimension, self.width, sizing_mode="stretch_width", margin=(0, 4), styles=CONTROLS)
        self.cards = {
            "collapse": Card(CollapseView(dark=dark), long_legend=True, below=[sliders]),
            "largest": Card(LargestView(dark=dark), long_legend=True),
        }
        self.begin()

    def begin(self) -> None:
        """Take the sliders back to where they were."""
        self._measured = (0.0, np.empty(0))
        self.dimension.value, self.width.value = 2, 1.3
        super().begin()

    def frame(self) -> dict[str, Any]:
        """Return what the views show."""
        dimension, width = int(self.dimension.value), float(self.width.value)
        if self._measured[0] != width:
            self._measured = (width, measured(width))
        share = np.sort(weights(dimension, width))[::-1][:_SHOWN]
        return {
            "collapse": {"dimension": dimension, "width": width, "measured": self._measured[1]},
            "largest": {"share": share},
        }
