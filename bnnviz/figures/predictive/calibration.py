"""Draw whether stated probabilities come true."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.figures import parts
from bnnviz.figures.base import SHARES, Figure
from bnnviz.figures.marks import (
    SERIES,
    SQUARE,
    Axis,
    Band,
    Bars,
    Drawing,
    Mark,
    chain,
    curve,
    diagonal,
    scores,
    whiskers,
)

SHADE, BAND = 0.2, 0.16
FILLED = 0.8  # of a bin's width
RIGHT = "right predictions, 95 %"


class Reliability(Figure):
    """Plot accuracy against confidence with intervals, and the proportion of rows in each bin."""

    name = "reliability"
    title = "Reliability"
    needs = ("reliability",)

    x, y, size = Axis("confidence", (0.0, 1.03), "exact"), Axis("accuracy", SHARES, "exact"), SQUARE
    always = (diagonal("accuracy = confidence"),)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw results of `bnnviz.diagnostics.reliability`, each with a ``name``."""
        entries = part["entries"][:SERIES]
        bars = [_bars(sampler, place, len(entries)) for place, sampler in enumerate(entries)]
        curves = [mark for place, sampler in enumerate(entries) for mark in _curve(sampler, place)]
        return self.drawing([*bars, *curves], note=scores(entries, "ece", "ECE"))


def _bars(sampler: dict[str, Any], place: int, of: int) -> Mark:
    """Return the proportion of rows in each bin as bars."""
    edges, count = np.asarray(sampler["edges"], dtype=float), np.asarray(sampler["count"], dtype=float)
    width = FILLED * float(np.diff(edges)[0]) / of
    middles = (edges[1:] + edges[:-1]) / 2 + (place - (of - 1) / 2) * width
    look = {"colour": chain(place), "opacity": SHADE, "label": "share of the rows"}
    return Bars(middles, count / max(count.sum(), 1.0), width, **look)


def _curve(sampler: dict[str, Any], place: int) -> list[Mark]:
    confidence = np.asarray(sampler["confidence"], dtype=float)
    known = np.isfinite(confidence)
    at = confidence[known]
    right, low, high = (np.asarray(sampler[name], dtype=float)[known] for name in ("accuracy", "low", "high"))
    label = f"{sampler['name']}, ECE {sampler['ece']:.3f}"
    interval = whiskers(at, low, high, 1.6, colour=chain(place), label="95 % interval")
    return [interval, *curve(at, right, place, label)]


def calibration(source: Any, observed: Any = None, *, bins: int = diagnostics.PAPER_BINS) -> Drawing:
    """Plot the calibration of predictions: a reliability diagram for classes, coverage of intervals for numbers.

    For classification, the figure shows the accuracy of the most probable class against its probability. Error bars are
    Wilson's 95 % intervals, bars show the proportion of rows in each bin, and the legend contains the expected
    calibration error (ECE). For regression, the figure shows the proportion of test rows within central intervals
    against the level of the intervals. A curve below the diagonal indicates intervals that are too narrow. Calibrated
    predictions are within the band with probability 95 % at each level. Use `pit` to see the direction of deviations.

    Parameters
    ----------
    source : Run, Recording, path, array, list or dict
        A network; probabilities (rows, classes) or (draws, rows, classes); the result of `bnnviz.uncertainty`;
        probability integral transforms (rows,); a dict of these by name; or the part ``reliability`` of a frame.
    observed : array_like, shape (rows,), optional
        Observed classes. Required if ``source`` contains probabilities.
    bins : int, default 10
        Number of bins of equal width from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> right = rng.uniform(size=2000) < p**1.5  # overconfident
    >>> plots.calibration(np.column_stack([1 - p, p]), right.astype(int))
    :Overlay...
    """
    entries = parts.entries(source)
    if entries is None:
        results = parts.uncertainty_results(source)
        numbers = parts.number_transforms(source) if results is None and observed is None else None
        if numbers is not None:
            return _coverage(numbers)
        if results is None:
            found = parts.each(source, observed)
            entries = [
                diagnostics.reliability(each.mean, each.observed, bins)._asdict() | {"name": each.name}
                for each in found
            ]
        else:
            entries = [{"name": name, **found["arrays"]["reliability"]} for name, found in results]
    return Reliability().draw({"entries": entries})


def _coverage(found: list[parts.NumberTransforms]) -> Drawing:
    """Return the share of the rows within central intervals, by their level."""
    made = [(each.name, diagnostics.coverage(each.transforms)) for each in found]
    marks: list[Mark] = [
        Band(one.levels, one.low, one.high, colour="muted", opacity=BAND, label=RIGHT)
        for one in {one.rows: one for _, one in made}.values()
    ]
    marks.append(diagonal("share = level"))
    for place, (name, one) in enumerate(made):
        marks += curve(one.levels, one.share, place, f"{name}, {one.rows:,} rows", size=6)
    x = Axis("level of the interval", (0.0, 1.0), "exact")
    return Drawing(marks, x=x, y=Axis("share of the rows within", (-0.02, 1.02), "exact"), size=SQUARE)
