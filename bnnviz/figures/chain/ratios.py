"""Plot the distribution of rate / envelope over all proposals. Ratios above 1 are violations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Area, Axis, Drawing, Mark, Points, Rule, Segments
from bnnviz.figures.palette import KINDS, VIOLATION, Kind
from bnnviz.numerals import general

BOX, CAP = 0.3, 0.16  # half of its height, and of the ends of its whiskers
START, FARTHEST = 1.25, 4.0  # of the axis, at first and at most
_CORNERS = (-BOX, -BOX, BOX, BOX, -BOX)
EDGE = 0.985  # of the axis: the position of values beyond it
LARGEST = Kind("largest", "circle", "blue", True)


class RateRatios(Figure):
    """Plot a box plot of the ratios of all chains."""

    name, title = "ratios", "Ratios, all proposals"
    needs = ("ratios",)
    place = 2
    of_draws = True
    x, y = Axis("rate / envelope", (0.0, START)), Axis(" ", (-0.5, 0.5), "exact", shown=False)
    size = (520, 200)
    always = (Rule([1.0], "x", 1.6, (6, 4), "rate = envelope", colour="muted"),)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw the quantiles ``least``, ``q25``, ``median``, ``q75``, ``q99`` and ``most``."""
        most = part["most"] if np.isfinite(part["most"]) else FARTHEST
        right = float(np.clip(1.1 * most, START, FARTHEST))
        names = ("least", "q25", "median", "q75", "q99")
        least, low, median, high, end = (min(float(part[name]), right) for name in names)
        lines = [(least, 0, low, 0), (high, 0, end, 0), (least, -CAP, least, CAP), (end, -CAP, end, CAP)]
        lines += [(low, side, high, side) for side in (-BOX, BOX)] + [(at, -BOX, at, BOX) for at in (low, high)]
        marks: list[Mark] = []
        for over, colour in ((False, "blue"), (True, "magenta")):
            ends = _clipped(low, high, over)
            box = [[np.column_stack([np.array(ends)[[0, 1, 1, 0, 0]], _CORNERS])]] if ends else []
            cut = [(*ends, y0, y1) for x0, y0, x1, y1 in lines if (ends := _clipped(x0, x1, over))]
            x0, x1, y0, y1 = np.array(cut).T if cut else np.empty((4, 0))
            look = {"colour": colour, "label": "" if over else "least to 99%"}
            marks += [
                Area(box, colour=colour, opacity=0.35, label="" if over else "middle half"),
                Segments(x0, y0, x1 - x0, y1 - y0, 2.0, **look),
            ]
        marks.append(Segments([median], [-BOX], [0.0], [2 * BOX], 3.4, label="median"))
        shown, violates = [min(most, EDGE * right)], part["most"] > 1
        at = [(shown, [0.0]), ([], [])]
        marks.append(Points(*at[violates], LARGEST, 10, label="largest"))
        over = Points(*at[not violates], KINDS[VIOLATION], 11, label="largest, violates")
        note = (
            f"median {part['median']:.2f} · 99% {part['q99']:.2f} · largest {general(part['most'])} ·"
            f" violations {100 * part['violation_share']:.1f}% of {part['proposals']:,}"
        )
        return self.drawing([*marks, over], x=replace(self.x, ends=(0.0, right)), note=note)


def _clipped(first: float, last: float, over: bool) -> tuple[float, float] | None:
    """Return the part of an interval on one side of 1, or None if it is empty."""
    begin, end = (max(first, 1.0), last) if over else (first, min(last, 1.0))
    return None if begin > end or (over and end <= 1.0) else (begin, end)


def ratios(source: Any) -> Drawing:
    """Plot a box plot of rate / envelope at all proposals.

    Ratios above 1 are violations of the envelope. The box shows the quartiles, the whiskers extend from the minimum to
    the 99% quantile, and a mark shows the maximum.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A run or recording of an event-based sampler, or the part ``ratios`` of a frame.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> paper = {"bound": "interpolated", "alpha": 1.0, "horizon": 1.0}
    >>> run = bnnviz.sample("banana", "bps", draws=50, warmup=0, chains=2, settings=paper)
    >>> plots.ratios(run)
    :Overlay...
    """
    return parts.drawn(RateRatios(), source, "ratios of rate and envelope")
