"""Draw the error of each sampler of a race against its gradients, both on a log scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SERIES, Axis, Band, Drawing, Line, Mark, Points, chain, extent, log_ticks, series_kind
from bnnviz.figures.palette import Kind

BAND = 0.16  # opacity of two standard errors to each side
HIGHEST = 2.0  # powers of ten: errors above 100 sd are outside the figure
ROOM = 0.12  # powers of ten, over and under the curves
DIVERGED = Kind("diverged", "x", "ink", False)


class Curves(Figure):
    """Plot the errors of mean and standard deviation. A cross marks the divergence of a sampler.

    The band is two standard errors to each side, by the jackknife over chains.
    """

    name = "curves"
    title = "Error against gradients"
    needs = ("curves",)

    def blank(self) -> Drawing:
        """Return empty axes up to the budget."""
        return self._drawing([], None, None)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``entries``: ``error`` at ``gradients``, and the gradients at which a sampler ``diverged``."""
        entries = part["entries"][:SERIES]
        found = [_logarithms(entry) for entry in entries]
        reach, across = (extent(*(each[i] for each in found)) if found else None for i in (1, 0))
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
        return self._drawing(marks, across, None if reach is None else (reach[0], top), "; ".join(words))

    def _drawing(self, marks: list[Mark], across: Any, up: Any, words: str = "") -> Drawing:
        """Show the last power of ten up to the budget, until a sampler has earlier draws."""
        budget = self.scene.get("budget")
        if budget is not None:
            end = math.log10(budget)
            across = extent(across or [], [end - 1, end])
        left, right = across or (3.0, 6.0)
        ends = left - ROOM / 4, right + ROOM / 4
        low, high = (-2.0, 1.0) if up is None else (up[0] - ROOM, up[1] + ROOM)
        x = Axis("gradients of each sampler", ends, "exact", ticks=log_ticks(*ends))
        y = Axis("error (sd)", (low, high), "exact", ticks=log_ticks(low, high))
        return Drawing(marks, x=x, y=y, words=words, size=(660, 380))


def _logarithms(entry: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the logarithms of gradients, errors and their intervals, where errors are finite and above zero."""
    x, y = np.asarray(entry["gradients"], dtype=float), np.asarray(entry["error"], dtype=float)
    fit = np.isfinite(y) & (y > 0) & (x > 0)
    x, y = np.log10(x[fit]), np.log10(y[fit])
    ends = (np.asarray(entry.get(f"error_{end}", entry["error"]), dtype=float)[fit] for end in ("low", "high"))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (np.log10(end) for end in ends)
    # An interval of unknown width is not drawn.
    return x, y, np.where(np.isfinite(low), low, y), np.where(np.isfinite(high), high, y)


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
    entries = parts.entries(source)
    if entries is None:
        entries = parts.entries(parts.part(source, "curves", "curves of a race").part)
    if not entries:
        raise BnnvizError("The race has no curves yet. Start it first.", "source")
    return Curves().draw({"entries": entries})
