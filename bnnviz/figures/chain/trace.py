"""Draw one number of each draw, draw by draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts, sources
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SERIES, Axis, Drawing, Line, Mark, Panels, Points, chain, future, reach
from bnnviz.figures.palette import KINDS, PICKED, VIOLATION, Kind
from bnnviz.figures.ranges import extent
from bnnviz.figures.sources import SourceDraws, draw_id

_DOT = Kind("draw", "circle", "blue", True)


class Trace(Figure):
    """Draw one number of each draw of up to eight chains: a component, a coordinate, or a sample statistic."""

    name, title = "trace", "Trace"
    needs = ("trace",)
    place = 6
    of_draws = True
    touch = {}

    def blank(self) -> Drawing:
        """Return empty axes."""
        label = "PC 1" if self.scene.get("dim", 3) > 2 else self.scene["names"][0]
        return Drawing(x=Axis("draw", (0.0, 100.0), "exact"), y=Axis(label, (-3.0, 3.0), "exact"))

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``values`` (chains or ``futures``, draws) at ``index`` (draws,), after those of the ``warmup``."""
        values, index, label = np.atleast_2d(part["values"])[:SERIES], part["index"], part["label"]
        futures, chains = part.get("futures", ()), part.get("chains", len(values))
        names = futures or [f"chain {i + 1}" for i in range(len(values))]
        # A future has its colour in every figure.
        colours = [future(letter) for letter in futures] or range(len(values))
        early = np.atleast_2d(part.get("warmup", np.empty((0, 0))))[:SERIES]
        before = np.arange(-early.shape[1], 0)
        marks: list[Mark] = [
            Line(before, each, 1.0, colour="grey", opacity=0.6, label="warm-up") for each in early if each.size
        ]
        marks += [trace_line(index, *each) for each in zip(values, colours, names, strict=True)]
        x, y = self.selection.get("trace_index", ()), self.selection.get("trace_value", ())
        marks.append(Points(x, y, PICKED, 7, width=1, label=PICKED.label if len(x) else ""))
        title = f"Principal component {label[3:]}" if label.startswith("PC ") else label
        if futures:
            title += f" since the fork, {' and '.join(futures)}"
        else:
            count = f"{chains}" if len(values) == chains else f"{len(values)} of {chains}"
            title += ", one chain" if chains == 1 else f", {count} chains"
        ends = extent(index)
        return Drawing(
            marks,
            x=Axis("draw", extent(before, index), follow="scroll"),
            y=Axis(label, extent(early, values), key=(label, part.get("basis"), len(values), chains, tuple(futures))),
            title=title,
            words="" if ends is None else "draws {:,.0f} to {:,.0f}".format(*ends),
        )


def trace_line(index: Any, values: Any, number: int, label: str) -> Line:
    """Return the draws of one chain."""
    return Line(index, values, 1.3, colour=chain(number), opacity=0.85, label=label)


def trace(
    source: Any, variables: str | Sequence[str] | None = None, *, chains: int = 8, points: bool = False
) -> Drawing | Panels:
    """Plot the draws of each chain in the order of sampling.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Draws. For one source, each chain has a colour. For several sources, each source has a colour and only the first
        chains are shown.
    variables : str or sequence of str, optional
        Variables to plot. The default is the first four. ``PC 1`` is the first principal component of all variables.
    chains : int, default 8
        Maximum number of chains.
    points : bool, default False
        Whether to show draws as points, as required by `linked`.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.trace({"mu": np.cumsum(rng.normal(size=(4, 200)), 1) / 5})
    :Overlay...
    """
    if (drawing := parts.given(Trace(), source, "values", "index")) is not None:
        return drawing
    if chains < 1:
        raise BnnvizError(f"chains = {chains} must be at least 1.", "chains")
    found, names = sources.shared(source, variables)
    return Panels([_drawing(found, name, chains, points) for name in names])


def _drawing(found: Sequence[SourceDraws], name: str, most: int, points: bool) -> Drawing:
    several = len(found) > 1
    marks: list[Mark] = []
    for place, draws in enumerate(found):
        values, index = draws.of(name), np.arange(draws.shape[1])
        for number in range(1 if several else min(most, len(values))):
            colour, label = (place, draws.name) if several else (number, f"chain {number + 1}")
            marks.append(trace_line(index, values[number], colour, label))
            if points:
                look = {"size": 4, "width": 0.5, "opacity": 0.7, "colour": chain(colour), "label": label}
                marks[-1] = Points(index, values[number], _DOT, ids=draw_id(number, index), **look)
    diverging = None if several else found[0].diverging
    if diverging is not None and diverging[:most].any():
        of, draw = np.nonzero(diverging[:most])
        values = found[0].of(name)[of, draw]
        marks.append(Points(draw, values, KINDS[VIOLATION], label="divergent"))
    ends = reach(marks)
    return Drawing(marks, x=Axis("draw", ends[0]), y=Axis(name, ends[1]))
