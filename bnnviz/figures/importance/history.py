"""Draw scores of the predictions by iteration, with their spread over the draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SERIES, Axis, Band, Drawing, Mark, chain, curve
from bnnviz.figures.palette import DOT
from bnnviz.figures.ranges import extent, padded
from bnnviz.numerals import general

SHADE = 0.18


class History(Figure):
    """Draw the mean over the draws of an iteration, and one standard deviation to both sides."""

    name, title = "history", "Scores per iteration"
    needs = ("history",)
    place = 14
    x, y = Axis("iteration"), Axis()

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``lines`` with ``name``, ``iteration``, ``mean`` and ``sd``. ``along`` is another name of iterations."""
        lines = part["lines"][:SERIES]
        marks: list[Mark] = []
        ends = []
        for place, line in enumerate(lines):
            at, mean = (np.asarray(line[name], dtype=float) for name in ("iteration", "mean"))
            sd = np.nan_to_num(np.asarray(line["sd"], dtype=float))
            ends += [mean - sd, mean + sd]
            marks.append(Band(at, mean - sd, mean + sd, colour=chain(place), opacity=SHADE, label="± 1 sd"))
            marks += curve(at, mean, place, line["name"], DOT, 6)
        across = padded(extent(*(line["iteration"] for line in lines)), 0.0, 0.5)
        note = "; ".join(f"{line['name']} {general(line['mean'][-1])}" for line in lines if len(line["mean"]))
        x = Axis(part.get("along", "iteration"), across, whole=True)
        return Drawing(marks, x=x, y=Axis(part["label"], padded(extent(*ends))), note=note)


def history(source: Any) -> Drawing:
    """Plot the mean and standard deviation of a score of the predictions for each iteration.

    Parameters
    ----------
    source : Run or dict
        A run of a network by a sampler with a population; or the part ``history`` of a frame: ``label`` and ``lines``,
        dicts with ``name``, ``iteration``, ``mean`` and ``sd``; and ``along``, another name of iterations.

    Examples
    --------
    >>> from bnnviz import plots
    >>> steps = list(range(1, 8))
    >>> full = {"name": "PMCnet", "iteration": steps, "mean": [1 - 0.4 * 0.6**t for t in steps], "sd": [0.03] * 7}
    >>> light = {"name": "light", "iteration": steps, "mean": [1 - 0.5 * 0.8**t for t in steps], "sd": [0.05] * 7}
    >>> plots.history({"label": "accuracy", "lines": [full, light]})
    :Overlay...
    """
    _, part = parts.part(source, "history", "a history of scores")
    if not isinstance(part.get("lines"), list) or not part["lines"]:
        raise BnnvizError("A history needs lines, dicts with name, iteration, mean and sd.", "source")
    return History().draw(part)
