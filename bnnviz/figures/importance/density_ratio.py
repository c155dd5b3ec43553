"""Draw the true density over that of each sampler's draws, which is one where they agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Drawing, Line, Mark, Rule, extent

HIGHEST = 4.0
_SAMPLERS = (("func", "FuncHMC", "green"), ("point", "HMC", "purple"))


class DensityRatio(Figure):
    """Plot the ratio of the target density to the density of the draws."""

    name = "density_ratio"
    title = "Truth / draws (KLIEP)"
    needs = ("ratio",)
    y = Axis("ratio", (0.0, HIGHEST), "exact")
    always = (Rule([1.0], width=2.0, label="1"),)

    def blank(self) -> Drawing:
        """Return the line at one."""
        return self._drawn([], self.scene.get("x", (-2.0, 2.0)))

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw the ratios ``func`` and ``point`` at ``x``."""
        marks: list[Mark] = []
        for name, label, colour in _SAMPLERS:
            values = np.asarray(part[name], dtype=float)
            marks.append(Line(part["x"], np.where(values > HIGHEST, np.nan, values), 2.4, colour=colour, label=label))
        return self._drawn(marks, part["x"])

    def _drawn(self, marks: list[Mark], x: Any) -> Drawing:
        words = "the true density over that of the draws, one where they agree"
        return self.drawing(marks, x=Axis("t", extent(x), "exact"), words=words)


def density_ratio(source: Any) -> Drawing:
    """Plot the ratio of the known density to the density of the draws of each sampler, estimated by KLIEP.

    Parameters
    ----------
    source : Wells or dict
        The result of `bnnviz.wells`, or the part ``ratio`` of a frame.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> plots.density_ratio(bnnviz.wells(moves=5))
    :Overlay...
    """
    _, part = parts.part(source, "ratio", "density ratio")
    if any(name not in part for name in ("x", "func", "point")):
        raise BnnvizError("There is no density ratio yet. Start the comparison first.", "source")
    return DensityRatio().draw(part)
