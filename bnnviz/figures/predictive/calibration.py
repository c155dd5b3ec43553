"""Draw whether stated probabilities come true, and on which side predicted distributions are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
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

SHADE, BAND, _DENSITY = 0.2, 0.16, 0.5  # opacities
FILLED = 0.8  # of a bin's width
RIGHT = "right predictions, 95%"


class Reliability(Figure):
    """Plot accuracy against confidence with intervals, and the proportion of rows in each bin."""

    name, title = "reliability", "Reliability"
    needs = ("reliability",)
    x, y, size = Axis("confidence", (0.0, 1.03), "exact"), Axis("accuracy", SHARES, "exact"), SQUARE
    always = (diagonal("accuracy = confidence"),)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw results of `bnnviz.diagnostics.reliability`, each with a ``name``."""
        entries = part["entries"][:SERIES]
        bars, curves = [], []
        for place, sampler in enumerate(entries):
            count = np.asarray(sampler["count"], dtype=float)
            shares = count / max(count.sum(), 1.0)
            look = {"opacity": SHADE, "label": "share of the rows"}
            bars.append(_beside(sampler["edges"], shares, place, len(entries), **look))
            names = ("confidence", "accuracy", "low", "high")
            at, right, low, high = (np.asarray(sampler[name], dtype=float) for name in names)
            at, right, low, high = (each[np.isfinite(at)] for each in (at, right, low, high))
            curves.append(whiskers(at, low, high, 1.6, colour=chain(place), label="95% interval"))
            curves += curve(at, right, place, f"{sampler['name']}, ECE {sampler['ece']:.3f}")
        return self.drawing([*bars, *curves], note=scores(entries, "ece", "ECE"))


def _beside(edges: Any, heights: Any, place: int, of: int, **look: Any) -> Mark:
    """Return the bars of one of several series, which share the width of each bin."""
    edges = np.asarray(edges, dtype=float)
    width = FILLED * float(np.diff(edges)[0]) / of
    return Bars(
        (edges[1:] + edges[:-1]) / 2 + (place - (of - 1) / 2) * width, heights, width, colour=chain(place), **look
    )


def calibration(source: Any, observed: Any = None, *, bins: int = diagnostics.PAPER_BINS) -> Drawing:
    """Plot the calibration of predictions: a reliability diagram for classes, coverage of intervals for numbers.

    For classification, the figure shows the accuracy of the most probable class against its probability. Error bars are
    Wilson's 95% intervals, bars show the proportion of rows in each bin, and the legend contains the expected
    calibration error (ECE). For regression, the figure shows the proportion of test rows within central intervals
    against the level of the intervals. A curve below the diagonal indicates intervals that are too narrow. Calibrated
    predictions are within the band with probability 95% at each level. Use `pit` to see the direction of deviations.

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
    if (drawing := parts.given(Reliability(), source, "entries")) is not None:
        return drawing
    results = parts.uncertainty_results(source)
    if results is None and observed is None and (numbers := parts.number_transforms(source)) is not None:
        return _coverage(numbers)
    if results is not None:
        entries = [{"name": name, **result["arrays"]["reliability"]} for name, result in results]
    else:
        made = parts.each(source, observed)
        entries = [{"name": e.name, **diagnostics.reliability(e.mean, e.observed, bins)._asdict()} for e in made]
    return Reliability().draw({"entries": entries})


def _coverage(found: list[tuple[str, np.ndarray]]) -> Drawing:
    """Return the share of the rows within central intervals, by their level."""
    made = [(name, diagnostics.coverage(transforms)) for name, transforms in found]
    marks: list[Mark] = [
        Band(one.levels, one.low, one.high, colour="muted", opacity=BAND, label=RIGHT)
        for one in {one.rows: one for _, one in made}.values()
    ]
    marks.append(diagonal("share = level"))
    for place, (name, one) in enumerate(made):
        marks += curve(one.levels, one.share, place, f"{name}, {one.rows:,} rows", size=6)
    x = Axis("level of the interval", (0.0, 1.0), "exact")
    return Drawing(marks, x=x, y=Axis("share of the rows within", (-0.02, 1.02), "exact"), size=SQUARE)


def pit(source: Any, *, bins: int = 10) -> Drawing:
    """Plot a histogram of probability integral transforms (PIT) of the observations.

    The PIT is the predictive distribution function at the observation. Its histogram is flat for calibrated
    predictions, and each bin is within the band with probability 95%. A U shape indicates overconfident predictions,
    an inverted U predictive distributions that are too wide, and a slope biased predictions.

    Parameters
    ----------
    source : Run, Recording, path, array, list or dict
        A regression network, evaluated on its test rows; transforms (rows,); or a dict of these by name.
    bins : int, default 10
        Number of bins of equal width from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.pit(rng.beta(0.5, 0.5, 400))  # overconfident
    :Overlay...
    """
    found = parts.number_transforms(source)
    if found is None:
        raise BnnvizError("The predictions are classes. Use plots.calibration.", "source")
    made = [(name, diagnostics.coverage(transforms, bins=bins)) for name, transforms in found]
    marks: list[Mark] = [
        Band([0, 1], [one.density_low] * 2, [one.density_high] * 2, colour="muted", opacity=BAND, label=RIGHT)
        for one in {one.rows: one for _, one in made}.values()
    ]
    for place, (name, one) in enumerate(made):
        look = {"opacity": _DENSITY, "label": f"{name}, {one.rows:,} rows"}
        marks.append(_beside(one.edges, one.density, place, len(made), **look))
    top = 1.08 * max(max(float(one.density.max()), one.density_high) for _, one in made)
    x = Axis("probability of at most the observation", (0.0, 1.0), follow="exact")
    return Drawing(marks, x=x, y=Axis("density", (0.0, top), "exact"))
