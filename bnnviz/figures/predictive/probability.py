"""Draw the predicted probabilities of one row over the draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Bars, Drawing, Line, Mark

HEADROOM, MOST = 1.12, 1.6  # of the highest bar: a fit may leave the figure at its ends
GAP = 0.06  # of a bar's width


class Probability(Figure):
    """Plot a histogram over draws of a class probability of one row, with a fitted beta density."""

    name = "chances"
    title = "Probability of one row"
    needs = ("chances",)

    x, y = Axis("probability", (0.0, 1.0), "exact"), Axis("density", (0.0, 5.0), "exact", count=3)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw bars ``density`` between ``edges``, and the density ``fit`` at ``x`` with parameters ``beta``."""
        edges, density, fit = (np.asarray(part[name], dtype=float) for name in ("edges", "density", "fit"))
        width = float(edges[1] - edges[0]) * (1 - GAP)
        marks: list[Mark] = [
            Bars((edges[1:] + edges[:-1]) / 2, density, width, colour="blue", opacity=0.5, label="draws"),
            Line(part["x"], fit, 2.4, colour="red", label="beta density"),
        ]
        top = float(density.max())
        top = HEADROOM * max(top, min(float(np.max(fit, initial=0.0)), MOST * top))
        beta = "" if part["beta"] is None else "beta({:.3g}, {:.3g})".format(*part["beta"])
        note = " · ".join(word for word in (part["observed"], beta, part.get("statement", "")) if word)
        x = Axis(part["label"], (0.0, 1.0), follow="exact")
        return Drawing(marks, x=x, y=Axis("density", (0.0, top), count=3), note=note)


def probability(source: Any, *, bins: int = 10) -> Drawing:
    """Plot a histogram over draws of a class probability of one row, with a fitted beta density.

    Parameters
    ----------
    source : array_like or dict
        Probabilities (draws,) of one class of one row, or the part ``chances`` of a frame.
    bins : int, default 10

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> plots.probability(np.random.default_rng(0).beta(5, 2, 300))
    :Overlay...
    """
    if isinstance(source, Mapping):
        part = parts.as_arrays(dict(source))
    else:
        values = np.asarray(source, dtype=float)
        if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
            raise BnnvizError("Give the probabilities of one row as (draws,), each from 0 to 1.", "source")
        part = diagnostics.probability_spread(values, bins)._asdict() | {"label": "probability", "observed": ""}
    return Probability().draw(part)
