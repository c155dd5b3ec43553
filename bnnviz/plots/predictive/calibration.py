"""Draw whether stated probabilities come true."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.plots import parts, style
from bnnviz.plots.predictive.coverage import covered
from bnnviz.views.palette import Palette

_SHADE = 0.22
_FILLED = 0.8  # of a bin's width


def calibration(
    source: Any,
    observed: Any = None,
    *,
    bins: int = diagnostics.PAPER_BINS,
    dark: bool = False,
) -> hv.Overlay:
    """Draw how often predictions come true: a reliability diagram of classes, the coverage of intervals of numbers.

    Of classes it is drawn how often the likeliest one is right, by its probability: on the diagonal probabilities come
    true; whiskers are Wilson's 95 % intervals, and bars the shares of the rows. The legend has the expected calibration
    error (ECE). Of numbers it is drawn how many of the test rows a central interval holds, by its level: below the
    diagonal intervals are too narrow. Right predictions are in the band with a probability of 95 % at each level, since
    the number of rows is binomial. `pit` draws on which side intervals are wrong.

    Parameters
    ----------
    source : Run, Recording, path, array, list or dict
        Networks of either kind; or probabilities (rows, classes) or (draws, rows, classes); or what
        `bnnviz.uncertainty` returned; or probability integral transforms (rows,) of numbers; or a dict of such by their
        names; or the part ``reliability`` of a frame.
    observed : array_like, shape (rows,), optional
        Class numbers, where probabilities are given.
    bins : int, default 10
        Of classes, of equal width from 0 to 1.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the source is no network, or what is given does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> said = rng.uniform(size=2000)
    >>> right = rng.uniform(size=2000) < said**1.5  # surer than it should be
    >>> plots.calibration(np.column_stack([1 - said, said]), right.astype(int))
    :Overlay...
    """
    palette = style.palette_of(dark)
    lanes = parts.lanes(source)
    if lanes is None:
        results = parts.uncertainty_results(source)
        numbers = parts.number_transforms(source) if results is None and observed is None else None
        if numbers is not None:
            return covered(numbers, palette)
        lanes = _lanes(source, observed, bins) if results is None else _of_results(results)
    x, y = hv.Dimension(("confidence", "confidence")), hv.Dimension(("accuracy", "accuracy"))
    drawn = [piece for place, lane in enumerate(lanes) for piece in _bars(lane, place, len(lanes), x, y, palette)]
    diagonal = hv.Curve(([0, 1], [0, 1]), x, y, label="as sure as right")
    drawn.append(style.line(diagonal, palette, palette.muted, 1.2, (4, 4)))
    for place, lane in enumerate(lanes):
        drawn += _curve(lane, place, x, y, palette)
    return style.finish(
        hv.Overlay(drawn), palette, size=style.SQUARE, room=150, legend="right", xlim=(0, 1), ylim=(-0.02, 1.02)
    )


def _lanes(source: Any, observed: Any, bins: int) -> list[dict[str, Any]]:
    found = parts.each(source, observed)
    return [diagnostics.reliability(each.mean, each.observed, bins)._asdict() | {"name": each.name} for each in found]


def _of_results(results: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [{"name": name, **found["arrays"]["reliability"]} for name, found in results]


def _bars(lane: dict[str, Any], place: int, of: int, x: Any, y: Any, palette: Palette) -> list[Any]:
    """Return bars of the rows in each bin; those of several lanes stand beside each other."""
    edges, count = np.asarray(lane["edges"], dtype=float), np.asarray(lane["count"], dtype=float)
    width = _FILLED * np.diff(edges) / of
    left = (edges[1:] + edges[:-1]) / 2 + (place - of / 2) * width
    shares = count / max(count.sum(), 1.0)
    boxes = hv.Rectangles((left, np.zeros(len(left)), left + width, shares), [x, y, "x1", "y1"])
    return [style.region(boxes, palette, style.series(palette, place)[0], _SHADE)]


def _curve(lane: dict[str, Any], place: int, x: Any, y: Any, palette: Palette) -> list[Any]:
    confidence = np.asarray(lane["confidence"], dtype=float)
    known = np.isfinite(confidence)
    at = confidence[known]
    right, low, high = (np.asarray(lane[name], dtype=float)[known] for name in ("accuracy", "low", "high"))
    colour, dash, marker = style.series(palette, place)
    label = f"{lane['name']}, ECE {lane['ece']:.3f}"
    whiskers = hv.Segments((at, low, at, high), [x, y, "x1", "y1"])
    return [
        style.line(whiskers, palette, colour, 1.6),
        style.line(hv.Curve((at, right), x, y, label=label), palette, colour, 2.0, dash),
        style.marks(hv.Scatter((at, right), x, y, label=label), palette, colour, marker, size=7.5),
    ]
