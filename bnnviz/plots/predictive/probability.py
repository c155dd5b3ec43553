"""Draw what draws say of one row: of one class, or of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.views.predictive.class_probabilities import APART, WIDE, shown_classes

_LETTERS = 40  # of all names: more do not fit beside each other


def probability(source: Any, *, bins: int = 10, dark: bool = False) -> hv.Overlay:
    """Draw how many of the draws give a row which probability, and the beta density that is fitted to them.

    Parameters
    ----------
    source : array_like or dict
        Probabilities (draws,) of one class of one row; or the part ``chances`` of a frame.
    bins : int, default 10
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If these are no probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> plots.probability(np.random.default_rng(0).beta(5, 2, 300))
    :Overlay...
    """
    palette = style.palette_of(dark)
    if isinstance(source, Mapping):
        part = parts.as_arrays(dict(source))
    else:
        values = np.asarray(source, dtype=float)
        if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
            raise BnnvizError("Give the probabilities of one row as (draws,), each from 0 to 1.", "source")
        part = diagnostics.probability_spread(values, bins)._asdict() | {"label": "probability", "observed": ""}
    x, y = hv.Dimension((part["label"], part["label"])), hv.Dimension((f"density of {part['label']}", "density"))
    bars = hv.Histogram((np.asarray(part["edges"]), np.asarray(part["density"])), kdims=x, vdims=y, label="draws")
    drawn = [style.region(bars, palette, palette.blue, 0.5)]
    top = float(np.max(part["density"]))
    if part["beta"] is not None:
        name = "beta({:.3g}, {:.3g})".format(*part["beta"])
        drawn.append(style.line(hv.Curve((part["x"], part["fit"]), x, y, label=name), palette, palette.red, 2.4))
        top = max(top, min(float(np.max(part["fit"], initial=0.0)), 1.6 * top))
    ends = {"xlim": (0.0, 1.0), "ylim": (0.0, 1.12 * top)}
    return style.finish(
        hv.Overlay(drawn), palette, title=part["observed"], size=style.WIDE, room=110, legend="right", **ends
    )


def class_probabilities(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw what one or several methods say of one row: of each class the mean over the draws, and where 95 % lie.

    Parameters
    ----------
    source : dict
        The part ``digit`` of a frame: ``classes``, their names; ``observed``, the number of the row's own or None;
        ``lanes``, dicts with ``name``, ``mean``, ``low`` and ``high`` (classes,), as in the intervals of
        `bnnviz.uncertainty`. Of more than twelve classes the likeliest are shown.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If it is no such part.

    Examples
    --------
    >>> from bnnviz import plots
    >>> hmc = {"name": "HMC", "mean": [0.1, 0.7, 0.2], "low": [0.0, 0.5, 0.1], "high": [0.3, 0.9, 0.4]}
    >>> sgld = {"name": "SGLD", "mean": [0.05, 0.9, 0.05], "low": [0.0, 0.8, 0.0], "high": [0.1, 1.0, 0.1]}
    >>> plots.class_probabilities({"classes": ["cat", "dog", "owl"], "observed": 1, "lanes": [hmc, sgld]})
    :Overlay...
    """
    lanes = parts.lanes(source)
    if not lanes or "classes" not in source:
        raise BnnvizError("Give classes, observed and lanes, as the intervals of bnnviz.uncertainty are.", "source")
    palette = style.palette_of(dark)
    observed, classes = source.get("observed"), list(source["classes"])
    shown = shown_classes(lanes, observed, len(classes))
    x, y = hv.Dimension(("class", "class")), hv.Dimension(("class probability", "probability"))
    drawn = []
    if observed is not None:
        for place in np.flatnonzero(shown == observed):
            box = hv.Rectangles([(place - 0.5, -0.1, place + 0.5, 1.1)], [x, y, "x1", "y1"], label="observed")
            drawn.append(style.region(box, palette, palette.pale, 0.2))
    apart = min(APART, WIDE / len(lanes))
    for place, lane in enumerate(lanes):
        colour, _, marker = style.series(palette, place)
        at = np.arange(len(shown)) + apart * (place - (len(lanes) - 1) / 2)
        mean, low, high = (np.asarray(lane[name], dtype=float)[shown] for name in ("mean", "low", "high"))
        whiskers = hv.Segments((at, low, at, high), [x, y, "x1", "y1"])
        drawn.append(style.line(whiskers, palette, colour, 2.4))
        drawn.append(style.marks(hv.Points((at, mean), [x, y], label=lane["name"]), palette, colour, marker, size=8))
    labels = [str(classes[k]) for k in shown]
    turned = 35 if sum(map(len, labels)) > _LETTERS else 0
    how = {"xticks": list(enumerate(labels)), "xrotation": turned, "ylim": (-0.02, 1.02)}
    how["xlim"] = (-0.5, len(labels) - 0.5)
    return style.finish(hv.Overlay(drawn), palette, size=style.WIDE, room=110, legend="right", **how)
