"""Draw how draws are spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.diagnostics.packages import array_stats
from bnnviz.figures import parts, sources
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Band, Bars, Drawing, Line, Mark, Panels, chain, dash_of, future, reach
from bnnviz.figures.ranges import extent, gapped
from bnnviz.figures.sources import SourceDraws

HEADROOM, MOST = 1.25, 1.6  # of the known density's height: few draws make towers
_APART = 0.05  # chains that share less of their density than this are drawn one by one


class Density(Figure):
    """Draw a histogram of the draws of a target's only coordinate over its known density, and accepted functionals."""

    name, title = "density", "Density"
    needs = ("density",)
    place = 5
    of_draws = True
    x, y = Axis("x1", (-4.0, 4.0), "exact"), Axis("density", (0.0, 0.5), "exact")

    def blank(self) -> Drawing:
        """Return the known density of the target."""
        return self.drawing() if self.scene.get("density") is None else self.draw({})

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw bars of ``width`` with heights ``y`` at ``x``, and the functionals of ``curves``."""
        known, curves = self.scene["density"], part.get("curves")
        top, highest = float(known["y"].max()), 0.0
        marks: list[Mark] = []
        if part:
            highest = float(part["y"].max())
            marks.append(Bars(part["x"], part["y"], part["width"], colour="blue", opacity=0.45, label="draws"))
        if curves is not None:
            accepted = gapped(curves["x"], curves["y"][curves["accepted"]])
            marks.append(Line(*accepted, 1.2, colour="green", opacity=0.4, label="functionals"))
        marks.append(Line(known["x"], known["y"], 2.4, label="the target", still=True))
        if curves is not None:
            marks.append(Line(curves["x"], curves["y"][-1], 2.6, colour="orange", label="the newest"))
        x = Axis(known["label"], extent(known["x"]), follow="exact")
        y = Axis("density", (0.0, max(HEADROOM * top, min(highest, MOST * top))), count=3)
        note = f"{part['draws']:,} draws" if part else ""
        return Drawing(marks, x=x, y=y, title=f"Density of {known['label']}", note=note)


class Marginal(Figure):
    """Draw the density of a weight or of a principal component, estimated from all draws."""

    name, title = "marginal", "Density"
    needs = ("marginal",)
    place = 10
    of_draws = True
    x, y = Axis("PC 1", (-3.0, 3.0), "exact"), Axis("density", (0.0, 0.5), "exact")

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw the density ``y`` at ``x`` of the quantity ``label``, and those of the futures."""
        futures = part.get("futures", ())
        marks = estimate(part["x"], part["y"], "blue", "all draws" if futures else "draws")
        for other in futures:
            letter = other["letter"]
            marks.append(Line(other["x"], other["y"], 2.4, colour=chain(future(letter)), label=letter))
        key = (part["label"], part.get("basis"))
        return Drawing(
            marks,
            x=Axis(part["label"], extent(part["x"], *(other["x"] for other in futures)), key=key),
            y=Axis("density", extent(part["y"], [0.0], *(other["y"] for other in futures)), key=key, count=3),
            note=f"{part['draws']:,} draws" if "draws" in part else "",
        )


def estimate(x: Any, y: Any, colour: str, label: str, filled: bool = True, dash: tuple[float, ...] = ()) -> list[Mark]:
    """Return a kernel estimate: a line over an area."""
    line = Line(x, y, 2.4, dash, colour=colour, label=label)
    return [Band(x, np.zeros(np.size(x)), y, colour=colour), line] if filled else [line]


def density(source: Any, variables: str | Sequence[str] | None = None) -> Drawing | Panels:
    """Plot a kernel density estimate of draws, computed by ArviZ.

    Chains that do not overlap have separate estimates, because a joint estimate would smooth across the gap between
    them.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Draws. Several sources have different colours. Weighted draws are resampled systematically.
    variables : str or sequence of str, optional
        Variables to plot. The default is the first four.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.density({"NUTS": {"mu": rng.normal(size=(4, 500))}, "SGLD": {"mu": 1.4 * rng.normal(size=(4, 500))}})
    :Overlay...
    """
    if (drawing := parts.given(Marginal(), source, "x", "y", "label")) is not None:
        return drawing
    array_stats()  # fails here where ArviZ is missing
    found, names = sources.shared(source, variables)
    return Panels([_of_draws(found, name) for name in names], 2)


def _of_draws(found: Sequence[SourceDraws], name: str) -> Drawing:
    marks: list[Mark] = []
    several = len(found) > 1
    for place, draws in enumerate(found):
        dash = dash_of(place) if several else ()
        weighted = draws.log_weights is not None
        own = [] if weighted else [diagnostics.density(values) for values in draws.finite(name)]
        if _overlap(own):
            estimated = diagnostics.density(draws.representative(name))
            marks += estimate(*estimated, chain(place), draws.name, not several, dash)
            continue
        for number, curve in enumerate(own):
            look = {"colour": chain(place if several else number), "label": f"{draws.name}, chain {number + 1}"}
            marks.append(Line(*curve, 2.4, dash, opacity=0.85, **look))
    across, up = reach(marks)
    return Drawing(marks, x=Axis(name, across), y=Axis("density", extent([0.0], up or ()), count=3))


def _overlap(curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> bool:
    """Return whether the densities are connected: each shares area with another, and all with each other by these."""
    from scipy.sparse.csgraph import connected_components  # pages do not load scipy.linalg

    curves = [(x, y) for x, y in curves if len(x)]  # a chain that stands still has no density
    if len(curves) < 2:
        return True
    low, high = extent(*(x for x, _ in curves))
    grid = np.linspace(low, high, 2000)
    heights = np.array([np.interp(grid, x, y, left=0.0, right=0.0) for x, y in curves])
    areas = np.trapezoid(heights, grid, axis=1)
    shared = np.trapezoid(np.minimum(heights[:, None], heights[None]), grid, axis=2)
    return connected_components(shared > _APART * np.minimum(areas[:, None], areas[None]))[0] == 1
