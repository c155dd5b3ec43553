"""Draw errors against step sizes, and the density at one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import CustomJSTickFormatter, FixedTicker, SingleIntervalTicker

from bnnviz.views.base import View, columns, separated
from bnnviz.views.canvas import Glyph, PackedColumns
from bnnviz.views.chain.density import DensityView
from bnnviz.views.palette import DARK, LIGHT, Kind, legend, line_html

#: The shape of each sampler's marks, which have the colours of chains: colour alone does not tell them apart.
SERIES = tuple(
    Kind(f"series {i + 1}", marker, "ink", i % 2 == 0)
    for i, marker in enumerate(("circle", "square", "triangle", "diamond", "circle", "square"))
)
FEWEST, MOST = 1e-4, 100.0  # relative errors that are drawn
# The canvas's axes are linear, so it is logarithms that are drawn.
# A power of ten, at three times one too: 0.003, 0.01, and beyond four digits 10⁻⁴.
_POWERS = """
const value = 10 ** tick
if (value >= 0.001 && value < 10000) { return `${Number(value.toPrecision(1))}` }
const [digit, power] = value.toExponential(0).split("e")
const raised = [...String(Number(power))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("")
return digit === "1" ? `10${raised}` : `${digit} × 10${raised}`
"""


class StepErrorView(View):
    """Draw the variance's relative error against the step size, both logarithmic, each sampler with its known curve."""

    name = "errors"
    title = "Error of the variance"
    needs = ("errors",)

    def _build(self) -> None:
        fig = self._figure("step size", "relative error", (-3.0, 0.5), (np.log10(FEWEST), 1.5))
        fig.xaxis[0].ticker = FixedTicker(ticks=[k + part for k in range(-9, 4) for part in (0.0, np.log10(3))])
        fig.yaxis[0].ticker = SingleIntervalTicker(interval=1.0, num_minor_ticks=0)
        for axis in (fig.xaxis[0], fig.yaxis[0]):
            axis.formatter = CustomJSTickFormatter(code=_POWERS)
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self._titles: list[str] = []
        self._reference = ""
        self.exact = PackedColumns(("x", "y"))
        self._coloured(self.canvas.line(self.exact, "x", "y", width=1.6, dash=(2, 4)), role="ink")
        self._glyphs: list[list[Glyph]] = []
        self.series = [self._series(kind) for kind in SERIES]

    def _series(self, kind: Kind) -> tuple[PackedColumns, PackedColumns]:
        points, known = PackedColumns(("x", "y", "whisker_x", "whisker")), PackedColumns(("x", "y"))
        curve = self.canvas.line(known, "x", "y", width=1.6, dash=(6, 4))
        whiskers = self.canvas.line(points, "whisker_x", "whisker", width=1.4, opacity=0.7)
        self._glyphs.append([curve, whiskers, self.canvas.marks(points, "x", "y", kind, 9, width=2)])
        return points, known

    def theme(self, dark: bool) -> None:
        """Change every colour in place, the samplers' too."""
        palette = DARK if dark else LIGHT
        for glyphs, kind, colour in zip(self._glyphs, SERIES, palette.chains, strict=False):
            for glyph in glyphs:
                glyph.update(colour=colour)
            glyphs[-1].update(fill=colour if kind.filled else palette.surface)
        super().theme(dark)

    def reset(self, scene: dict) -> None:
        """Draw the known curves of the samplers of a new scene, at most six of them."""
        self.forget()
        shown = scene["samplers"][: len(SERIES)]
        self._titles, self._reference = [sampler["title"] for sampler in shown], scene["reference"]
        sizes = np.concatenate([sampler["size"] for sampler in shown])
        self._x.start_at(np.log10(sizes.min()) - 0.1, np.log10(sizes.max()) + 0.1)
        self._y.start_at(np.log10(FEWEST), np.log10(MOST))
        for (_, known), sampler in zip(self.series, shown, strict=False):
            curve = sampler["known"] or {"size": [], "error": []}
            self._push(known, columns(x=np.log10(curve["size"]), y=_logarithm(curve["error"])))

    def forget(self) -> None:
        """Empty everything."""
        self.note = ""
        self._empty(self.exact, *(packed for pair in self.series for packed in pair))

    def legend_html(self) -> str:
        """Give the legend: the samplers, what is known of them, and the one without a step size."""
        p = self.palette
        marks = [line_html(title, colour, p) for title, colour in zip(self._titles, p.chains, strict=False)]
        exact = [line_html(self._reference, p.ink, p, dash="2 4")] if self._reference else []
        return legend(*marks, line_html("known", p.muted, p, dash="6 4"), *exact)

    def _show(self, part: dict) -> bool:
        slopes = " · ".join(
            f"{title} {found['slope'].value:.2f}±{found['slope'].error:.2f}"
            for title, found in zip(self._titles, part["samplers"], strict=False)
            if found["slope"] is not None
        )
        self.note = f"slopes: {slopes}" if slopes else ""
        moved = [
            self._push(points, _points(found))
            for (points, _), found in zip(self.series, part["samplers"], strict=False)
        ]
        return self._push(self.exact, self._exact(part["reference"])) or any(moved)

    def _exact(self, reference: dict | None) -> dict[str, np.ndarray]:
        """Give the line above which the error of the sampler without a step size does not lie."""
        if reference is None:
            return columns(x=[], y=[])
        level = _logarithm([abs(reference["error"]) + reference["se"]])[0]
        return columns(x=[self._x.range.start, self._x.range.end], y=[level, level])


class CellView(DensityView):
    """Draw the histogram of one sampler at one step size, over the exact density."""

    name = "cell"
    title = "Density"
    needs = ("cell",)

    def _show(self, part: dict) -> bool:
        changed = super()._show(part)
        waits = "is tuned" if part["tuned"] else f"{part['wait']:,} move{'s' * (part['wait'] != 1)} before it counts"
        state = waits if part["tuned"] or part["wait"] else f"{part['draws']:,} draws"
        self.note = f"{part['title']}, step size {part['size']:.3g} · {state}"
        return changed


def _logarithm(values: Any) -> np.ndarray:
    return np.log10(np.clip(np.abs(np.asarray(values, dtype=float)), FEWEST, MOST))


def _points(found: dict) -> dict[str, np.ndarray]:
    x, error, se = np.log10(found["size"]), np.abs(found["error"]), found["se"]
    low, high = _logarithm(np.maximum(error - se, FEWEST)), _logarithm(error + se)
    return columns(x=x, y=_logarithm(error), whisker_x=separated(x, x), whisker=separated(low, high))
