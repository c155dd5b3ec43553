"""Draw the predicted probabilities of one row: of a class over the draws, and of all classes by several methods."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import SHARES, Figure
from bnnviz.figures.marks import SERIES, Axis, Band, Bars, Drawing, Line, Mark, Points, chain, series_kind, whiskers

HEADROOM, MOST = 1.12, 1.6  # of the highest bar: a fit may leave the figure at its ends
GAP = 0.06  # of a bar's width
MOST_CLASSES = 12
LONG = 60  # letters of all names: more do not fit in one row
WIDE, APART = 0.66, 0.18  # in classes: the width of all samplers, and the largest gap between two of them
NAMED = 3  # the most samplers whose likeliest classes are in the note
SHADE = 0.2


class Probability(Figure):
    """Plot a histogram over draws of a class probability of one row, with a fitted beta density."""

    name, title = "chances", "Probability of one row"
    needs = ("chances",)
    x, y = Axis("probability", (0.0, 1.0), "exact"), Axis("density", (0.0, 5.0), "exact", count=3)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw bars ``density`` between ``edges``, and the density ``fit`` at ``x`` with parameters ``beta``."""
        edges, density, fit = (np.asarray(part[name], dtype=float) for name in ("edges", "density", "fit"))
        width = float(edges[1] - edges[0]) * (1 - GAP)
        marks: list[Mark] = [
            Bars((edges[1:] + edges[:-1]) / 2, density, width, colour="blue", opacity=0.5, label="draws"),
            Line(part["x"], fit, 2.4, colour="red", label="beta density"),
        ]
        top = float(density.max())
        top = HEADROOM * max(top, min(float(np.max(fit, initial=0.0)), MOST * top))
        beta = "" if part["beta"] is None else "beta({:.3g}, {:.3g})".format(*part["beta"])
        note = " · ".join(word for word in (part["observed"], beta, part.get("statement", "")) if word)
        x = Axis(part["label"], (0.0, 1.0), follow="exact")
        return Drawing(marks, x=x, y=Axis("density", (0.0, top), count=3), note=note)


class ClassProbabilities(Figure):
    """Draw the mean probability of each class over the draws, and 95% of them, for the twelve likeliest classes."""

    name, title = "digit", "Probabilities of one row"
    needs = ("digit",)
    x, y = Axis("class", (-0.5, 9.5), "exact", grid=False), Axis("probability", SHARES, "exact")

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw each sampler's ``mean``, ``low`` and ``high`` (classes,), and the ``observed`` class."""
        entries, observed = part["entries"][:SERIES], part.get("observed")
        names = [str(name) for name in part["classes"]]
        shown = np.arange(min(len(names), MOST_CLASSES))
        if len(names) > MOST_CLASSES and entries:
            most = np.nan_to_num(np.max([sampler["mean"] for sampler in entries], axis=0).astype(float))
            if observed is not None:
                most[observed] = math.inf
            shown = np.sort(np.argsort(-most, kind="stable")[:MOST_CLASSES])
        marks: list[Mark] = []
        if observed is not None:
            edges = [at + side for at in np.flatnonzero(shown == observed) for side in (-0.5, 0.5)]
            ends = [-1.0] * len(edges), [2.0] * len(edges)
            marks.append(Band(edges, *ends, colour="pale", opacity=SHADE, label="observed"))
        apart = min(APART, WIDE / max(len(entries), 1))
        for place, sampler in enumerate(entries):
            mean, low, high = (np.asarray(sampler[name], dtype=float)[shown] for name in ("mean", "low", "high"))
            x = np.arange(len(shown)) + apart * (place - (len(entries) - 1) / 2)
            marks.append(whiskers(x, low, high, 2.4, colour=chain(place), label="95% of draws"))
            marks.append(Points(x, mean, series_kind(place), label=sampler["name"]))
        labels = [names[k] for k in shown]
        turned = sum(map(len, labels)) > LONG
        axis = replace(self.x, ends=(-0.5, len(labels) - 0.5), ticks=dict(enumerate(labels)), turned=turned)
        words = [] if observed is None else [f"observed {names[observed]}"]
        known = [sampler for sampler in entries if np.isfinite(sampler["mean"]).all()]
        best = [int(np.argmax(sampler["mean"])) for sampler in known]
        if len(known) <= NAMED:
            pairs = zip(known, best, strict=True)
            words += [f"{sampler['name']} {names[k]} ({sampler['mean'][k]:.2f})" for sampler, k in pairs]
        elif observed is not None:
            words.append(f"the likeliest for {best.count(observed)} of {len(known)}")
        if len(shown) < len(names):
            words.append(f"{len(shown)} of {len(names)} classes")
        return self.drawing(marks, x=axis, note="; ".join(words))


def probability(source: Any, *, bins: int = 10) -> Drawing:
    """Plot a histogram over draws of a class probability of one row, with a fitted beta density.

    Parameters
    ----------
    source : array_like or dict
        Probabilities (draws,) of one class of one row, or the part ``chances`` of a frame.
    bins : int, default 10

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> plots.probability(np.random.default_rng(0).beta(5, 2, 300))
    :Overlay...
    """
    if (drawing := parts.given(Probability(), source, "edges", "density")) is not None:
        return drawing
    values = np.asarray(source, dtype=float)
    if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
        raise BnnvizError("Give the probabilities of one row as (draws,), each from 0 to 1.", "source")
    spread = diagnostics.probability_spread(values, bins)._asdict()
    return Probability().draw(spread | {"label": "probability", "observed": ""})


def class_probabilities(source: Any) -> Drawing:
    """Plot class probabilities of one row by one or several methods, with 95% intervals over the draws.

    Parameters
    ----------
    source : dict
        The part ``digit`` of a frame: ``classes``, their names; ``observed``, the number of the observed class or None;
        ``entries``, dicts with ``name``, ``mean``, ``low`` and ``high`` (classes,), as in the intervals of
        `bnnviz.uncertainty`. With more than twelve classes, only the most probable classes are shown.

    Examples
    --------
    >>> from bnnviz import plots
    >>> hmc = {"name": "HMC", "mean": [0.1, 0.7, 0.2], "low": [0.0, 0.5, 0.1], "high": [0.3, 0.9, 0.4]}
    >>> sgld = {"name": "SGLD", "mean": [0.05, 0.9, 0.05], "low": [0.0, 0.8, 0.0], "high": [0.1, 1.0, 0.1]}
    >>> plots.class_probabilities({"classes": ["cat", "dog", "owl"], "observed": 1, "entries": [hmc, sgld]})
    :Overlay...
    """
    drawing = parts.given(ClassProbabilities(), source, "classes", "entries")
    if drawing is None or not source["entries"]:
        raise BnnvizError("Give classes, observed and entries, as in the intervals of bnnviz.uncertainty.", "source")
    return drawing
