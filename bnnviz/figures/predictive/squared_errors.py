"""Draw a box and a violin of each method's squared errors, on a log scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SERIES, Axis, Band, Drawing, Mark, Points, Segments, chain
from bnnviz.figures.palette import Kind
from bnnviz.figures.ranges import extent, log_ticks, padded

VIOLIN, BOX = 0.42, 0.11  # half their heights, in units of the places
OUTSIDE = Kind("beyond the whiskers", "dot", "ink", True)
MEAN = Kind("mean", "diamond", "ink", True)
_LINE, _EDGES = 62, 90  # pixels of height: of a box, and around all


class SquaredErrors(Figure):
    """Draw the spread over the test rows: violin, box of the middle half, whiskers, and the mean."""

    name, title = "errors2", "Squared errors of the test rows"
    needs = ("errors2",)
    left = 110
    x = Axis("squared error", (-4.0, 2.0), "exact", ticks=log_ticks(-4.0, 2.0))
    y = Axis(" ", (0.5, -0.5), "exact", ticks={0: " "})

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``boxes``, as `bnnviz.diagnostics.error_spread` returns them, each with a ``name``."""
        boxes = part["boxes"][:SERIES]
        marks: list[Mark] = []
        for place, box in enumerate(boxes):
            colour, density = chain(place), np.asarray(box["density"], dtype=float)
            low, q1, median, q3, high = (float(box[name]) for name in ("low", "q1", "median", "q3", "high"))
            half = VIOLIN * density / density.max() if density.size else density
            cap = BOX / 2
            lines = [(low, 0, q1, 0), (q3, 0, high, 0), (low, -cap, low, cap), (high, -cap, high, cap)]
            x0, y0, x1, y1 = np.array([*lines, (median, -2 * BOX, median, 2 * BOX)]).T
            outside = np.ravel(np.asarray(box["outside"], dtype=float))
            level = np.full(len(outside), float(place))
            marks += [
                Band(box["y"], place - half, place + half, colour=colour, opacity=0.3, label="density"),
                Segments(x0, place + y0, x1 - x0, y1 - y0, 1.8, colour=colour, label="whiskers and median"),
                Points(outside, level, OUTSIDE, 3, colour=colour, label=OUTSIDE.label),
                Band([q1, q3], [place - BOX] * 2, [place + BOX] * 2, colour=colour, opacity=0.65, label="middle half"),
            ]
        at = [float(box["mean"]) for box in boxes], list(range(len(boxes)))
        marks.append(Points(*at, MEAN, 10, label="mean"))
        reach = extent(*([box["low"], box["high"], box["mean"], *np.ravel(box["outside"])] for box in boxes))
        zeros = sum(box.get("zeros", 0) for box in boxes)
        names = [box["name"] for box in boxes]
        note = f"{zeros} errors of zero are left out" if zeros else ""
        ends = padded(reach or self.x.ends, 0.04)
        x = Axis("squared error", ends, follow="exact", ticks=log_ticks(*ends))
        y = Axis(" ", (len(names) - 0.5, -0.5), "exact", ticks=dict(enumerate(names)))
        return Drawing(marks, x=x, y=y, note=note, size=(600, _EDGES + _LINE * len(names)))


def squared_errors(source: Any) -> Drawing:
    """Plot violin and box plots of squared errors on a logarithmic axis, with their means.

    The box shows the quartiles. The whiskers extend to the last error within 1.5 times the interquartile range.

    Parameters
    ----------
    source : array_like or dict
        Squared errors (rows,); a dict of such by names; or the part ``errors2`` of a frame.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.squared_errors({"HMC": rng.normal(size=300) ** 2, "SGLD": (1.5 * rng.normal(size=300)) ** 2})
    :Overlay...
    """
    if (drawing := parts.given(SquaredErrors(), source, "boxes")) is not None:
        return drawing
    boxes = []
    for name, values in source.items() if isinstance(source, Mapping) else [("", source)]:
        found = diagnostics.error_spread(np.asarray(values, dtype=float))
        if found is None:
            raise BnnvizError(f"No squared error of {name or 'the rows'} is above zero.", "source")
        boxes.append(found._asdict() | {"name": str(name)})
    return SquaredErrors().draw({"boxes": boxes})
