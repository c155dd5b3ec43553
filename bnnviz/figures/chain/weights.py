"""Draw how the coordinates of a layer, or of a target, are correlated over the draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts, sources
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SQUARE, Axis, Drawing, Image, Mark, Rule

MOST = 60  # coordinates
RAMP = ("blue", "surface", "magenta")


class Correlations(Figure):
    """Plot a heat map of correlations."""

    name, title = "weights", "Correlations"
    needs = ("weights",)
    place = 8
    of_draws = True
    touch = {"cells": True}
    x = y = Axis("coordinate", (-0.5, 9.5), "exact", whole=True)
    size = SQUARE
    _pair: tuple[int, int] | None = None
    _part: dict[str, Any] | None = None

    def blank(self) -> Drawing:
        """Return empty axes."""
        self._pair = self._part = None
        return self.drawing()

    def choose(self, x: float, y: float) -> int | None:
        """Show the correlation at a position and return its coordinate."""
        if self._part is None:
            return None
        first, size = self._part["first"], len(self._part["correlation"])
        pair = round(x), round(y)
        if not all(first <= i < first + size for i in pair):
            return None
        self._pair = pair
        return pair[0]

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``correlation`` (coordinates, coordinates) of a ``block`` that begins at ``first``."""
        first, size = int(part["first"]), len(part["correlation"])
        before, self._part = self._part, part
        if before is not None and (before["block"], before["first"]) != (part["block"], part["first"]):
            self._pair = None
        drawing, chosen = _map(part["correlation"], first, f"coordinate ({part['block']})"), part.get("chosen")
        at = [chosen] if chosen is not None and first <= chosen < first + size else []
        crosses: list[Mark] = [Rule(at, axis, 1.2, (4, 3)) for axis in "xy"]
        note = f"{part.get('draws', 0):,} draws"
        if self._pair is not None:
            i, j = self._pair
            note = f"r({i}, {j}) {part['correlation'][j - first, i - first]:.2f}"
        return replace(drawing, marks=[*drawing.marks, *crosses], note=note)


def _map(found: np.ndarray, first: int, label: str) -> Drawing:
    last = first + len(found) - 1
    box = (first, last, first, last)
    image = Image(found, box, len(found), RAMP, -1.0, 1.0, blended=False, label="r", ends=("−1", "1"))
    axis = Axis(label, (first - 0.5, last + 0.5), "exact", whole=True)
    return Drawing([image], x=axis, y=axis, size=SQUARE)


def weights(source: Any, variables: str | Sequence[str] | None = None, *, most: int = MOST) -> Drawing:
    """Plot a heat map of correlations of the weights of a network or of other variables.

    Coordinates are numbered in the order of the variables.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array or dict
        Draws, or the part ``weights`` of a frame.
    variables : str or sequence of str, optional
        Variables to include. By default the first coordinates are used.
    most : int, default 60
        Maximum number of coordinates if ``variables`` is not given.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> mixed = np.eye(8) + 0.5 * rng.normal(size=(8, 8))
    >>> plots.weights(rng.normal(size=(4, 100, 8)) @ mixed)
    :Overlay...
    """
    if (drawing := parts.given(Correlations(), source, "correlation")) is not None:
        return drawing
    draws = sources.one(source)
    names = draws.chosen(variables, most)
    if len(names) < 2:
        raise BnnvizError("Correlations require at least two variables.", "variables")
    columns = np.column_stack([draws.finite(name).ravel() for name in names])
    if draws.log_weights is None:
        found = diagnostics.correlation(columns)
    else:
        cov = diagnostics.weighted_moments(columns, draws.log_weights.ravel()).cov
        sd = np.sqrt(np.diag(cov))
        with np.errstate(invalid="ignore", divide="ignore"):
            found = cov / np.outer(sd, sd)
    return _map(found, 0, "coordinate")
