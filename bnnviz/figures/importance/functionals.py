"""Draw the distributions of FuncHMC over the true density, and the points of HMC."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Drawing, Line, Mark, Points, Rule, extent, gapped
from bnnviz.figures.palette import Kind

HEADROOM, MOST = 1.15, 4.0  # of the known density's height
BELOW = 0.1  # of the height: the position of points below the axis
POINT = Kind("HMC's points", "circle", "purple", True)
NEWEST = Kind("its newest", "circle", "purple", False)
OLDEST = 0.3


class Functionals(Figure):
    """Plot the accepted functionals as curves and the draws of the other sampler below the axis."""

    name = "functionals"
    title = "FuncHMC's functionals and HMC's points"
    needs = ("wells",)

    def blank(self) -> Drawing:
        """Return the true density and the first functional."""
        if "truth" not in self.scene:
            return super().blank()
        return self._drawing([], [], 0.0)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw functionals ``y``, those ``accepted``, and the ``points`` of HMC."""
        curves, points = np.asarray(part["y"]), np.asarray(part["points"], dtype=float)
        if not len(curves):
            return self.blank()
        x, accepted = self.scene["x"], np.asarray(part["accepted"], dtype=bool)
        under = [Line(*gapped(x, curves[accepted]), 1.4, colour="green", opacity=0.5, label="functionals")]
        place = np.full(len(points), -0.5 * BELOW * self._top)
        alpha = np.linspace(OLDEST, 1.0, len(points))
        over = [
            Line(x, curves[-1], 3.0, colour="orange", label="the newest"),
            Points(points, place, POINT, 9, alpha=alpha, label=POINT.label),
            Points(points[-1:], place[-1:], NEWEST, 17, 2.6, label=NEWEST.label),
        ]
        note = f"{part['moves']} moves" if part.get("moves") != 1 else "1 move"
        return self._drawing(under, over, float(curves.max()), note)

    @property
    def _top(self) -> float:
        return HEADROOM * max(float(np.max(self.scene["truth"])), float(np.max(self.scene["first"])))

    def _drawing(self, under: list[Mark], over: list[Mark], highest: float, note: str = "") -> Drawing:
        x, top = self.scene["x"], self._top
        marks = [
            Rule([0.0], colour="axis"),
            *under,
            Line(x, self.scene["truth"], 3.0, label="the target"),
            Line(x, self.scene["first"], 2.0, (7, 5), colour="green", label="first functional"),
            *over,
        ]
        if highest > MOST * top:
            note = f"{note}, highest peak {highest:.2g}"  # beyond the axis
        y = Axis("density", (-BELOW * top, max(top, min(HEADROOM * highest, MOST * top))))
        return Drawing(marks, x=Axis("t", extent(x), follow="exact"), y=y, note=note)


def functionals(source: Any) -> Drawing:
    """Plot the accepted functionals as densities, with the target density and the draws of HMC.

    Parameters
    ----------
    source : Wells or dict
        The result of `bnnviz.wells`, or the part ``wells`` of a frame, with its scene under ``scene``.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> plots.functionals(bnnviz.wells(moves=5))
    :Overlay...
    """
    scene, part = parts.part(source, "wells", "functionals")
    if any(name not in scene for name in ("x", "truth", "first")) or not len(part.get("y", ())):
        raise BnnvizError("There are no functionals yet. Start the comparison first.", "source")
    return parts.drawn(Functionals(), source, "functionals")
