"""Draw the samplers of a race: errors against gradients, both on a log scale, and scores against seconds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SERIES, Axis, Band, Drawing, Line, Mark, Points, chain, curve, series_kind
from bnnviz.figures.palette import DOT, Kind
from bnnviz.figures.ranges import extent, log_ticks, padded
from bnnviz.numerals import general

BAND = 0.16  # opacity of two standard errors to each side
HIGHEST = 2.0  # powers of ten: errors above 100 sd are outside the figure
ROOM = 0.12  # powers of ten, over and under the curves
LEAST_ROOM = 0.02  # above and below: small differences of the first scores are not magnified
#: The scores, and their names at the axis.
MEASURES = {"accuracy": "accuracy", "nll": "NLL", "ece": "ECE"}
DIVERGED = Kind("diverged", "x", "ink", False)


class Curves(Figure):
    """Plot the errors of mean and standard deviation, with two standard errors by the jackknife over chains."""

    name, title = "curves", "Error against gradients"
    needs = ("curves",)

    def blank(self) -> Drawing:
        """Return empty axes up to the budget."""
        return self.draw({"entries": []})

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``entries``: ``error`` at ``gradients``, and the gradients at which a sampler ``diverged``."""
        entries = part["entries"][:SERIES]
        found = []
        for entry in entries:
            names = ("gradients", "error", "error_low", "error_high")
            columns = np.array([entry.get(name, entry["error"]) for name in names], dtype=float)
            with np.errstate(divide="ignore", invalid="ignore"):
                x, y, low, high = np.log10(columns[:, np.isfinite(columns[1]) & (columns[:2] > 0).all(0)])
            # An interval of unknown width is not drawn.
            found.append((x, y, np.where(np.isfinite(low), low, y), np.where(np.isfinite(high), high, y)))
        reach, across = (extent(*(each[i] for each in found)) for i in (1, 0))
        top = HIGHEST if reach is None else min(reach[1], HIGHEST)
        marks: list[Mark] = []
        words = []
        for place, (entry, (x, y, low, high)) in enumerate(zip(entries, found, strict=True)):
            name, lost = str(entry["name"]), float(entry.get("diverged", math.nan))
            look = {"colour": chain(place), "label": name}
            marks += [
                Band(x, low, high, colour=chain(place), opacity=BAND, label="± 2 standard errors"),
                Line(x, y, 2.4, **look),
            ]
            if math.isfinite(lost):
                left = -math.inf if across is None else across[0]
                at = [max(math.log10(max(lost, 1.0)), left)], [min(float(y[-1]), top) if len(y) else top]
                marks.append(Points(*at, DIVERGED, 12, 3.0, colour=chain(place), label=f"{name} diverged"))
            else:
                marks.append(Points(x[-1:], y[-1:], series_kind(place), 9, 2.0, **look))
            words += [f"{name} {10 ** float(y[-1]):.2g}"] if len(y) and not math.isfinite(lost) else []
        budget = self.scene.get("budget")
        if budget is not None:  # the last power of ten up to it, until a sampler has earlier draws
            across = extent(across or [], [math.log10(budget) - 1, math.log10(budget)])
        left, right = across or (3.0, 6.0)
        ends = left - ROOM / 4, right + ROOM / 4
        low, high = (-2.0, 1.0) if reach is None else (reach[0] - ROOM, top + ROOM)
        x = Axis("gradients of each sampler", ends, "exact", ticks=log_ticks(*ends))
        y = Axis("error (sd)", (low, high), "exact", ticks=log_ticks(low, high))
        return Drawing(marks, x=x, y=y, words="; ".join(words), size=(660, 380))


class Course(Figure):
    """Plot accuracy, negative log predictive density or calibration error of the test rows over time."""

    name, title = "course", "Over time"
    needs = ("course",)
    x, y = Axis("seconds of each sampler", (0.0, 10.0), "exact"), Axis()
    measure = next(iter(MEASURES))

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw each sampler's measures against its ``seconds``."""
        entries = part["entries"][:SERIES]
        values = [np.asarray(sampler[self.measure], dtype=float) for sampler in entries]
        pairs = list(zip(entries, values, strict=True))
        marks = [
            mark
            for place, (sampler, y) in enumerate(pairs)
            for mark in curve(sampler["seconds"], y, place, sampler["name"], DOT, 6)
        ]
        across = extent(*(sampler["seconds"] for sampler in entries))
        x = Axis("seconds of each sampler", None if across is None else (0.0, max(across[1], 1e-3)), key="running")
        y = Axis(MEASURES[self.measure], padded(extent(*values), 0.06, LEAST_ROOM), key=self.measure)
        note = "; ".join(f"{sampler['name']} {general(y[-1])}" for sampler, y in pairs if len(y))
        return Drawing(marks, x=x, y=y, note=note)


def race(source: Any) -> Drawing:
    """Plot errors of mean and standard deviation against the number of gradients, with logarithmic axes.

    Parameters
    ----------
    source : Race or dict
        The result of `bnnviz.race`; or the part ``curves`` of a frame: ``entries``, dicts with ``name``, ``gradients``,
        ``error`` and ``diverged``, the gradients at which a sampler diverged, nan for the others; optional
        ``error_low`` and ``error_high`` are the edges of a band: two standard errors by the jackknife over chains.

    Examples
    --------
    >>> from bnnviz import plots
    >>> spent = [1e3, 1e4, 1e5, 1e6]
    >>> never = float("nan")
    >>> hmc = {"name": "HMC", "gradients": spent, "error": [0.5, 0.2, 0.06, 0.02], "diverged": never}
    >>> sgld = {"name": "SGLD", "gradients": spent, "error": [0.4, 0.2, 0.15, 0.14], "diverged": never}
    >>> plots.race({"entries": [hmc, sgld]})
    :Overlay...
    """
    _, part = parts.part(source, "curves", "curves of a race")
    if not part.get("entries"):
        raise BnnvizError("The race has no curves yet. Start it first.", "source")
    return Curves().draw({"entries": part["entries"]})
