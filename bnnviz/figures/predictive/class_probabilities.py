"""Draw the class probabilities of one row by several methods, with intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import SHARES, Figure
from bnnviz.figures.marks import SERIES, Axis, Band, Drawing, Mark, Points, chain, series_kind, whiskers

MOST_CLASSES = 12
LONG = 60  # letters of all names: more do not fit in one row
WIDE, APART = 0.66, 0.18  # in classes: the width of all samplers, and the largest gap between two of them
NAMED = 3  # the most samplers whose likeliest classes are in the note
SHADE = 0.2


class ClassProbabilities(Figure):
    """Draw the mean probability of each class over the draws, and the interval that holds 95 % of them.

    With more than twelve classes, only the most probable classes and the observed class are shown.
    """

    name = "digit"
    title = "Probabilities of one row"
    needs = ("digit",)

    x, y = Axis("class", (-0.5, 9.5), "exact", grid=False), Axis("probability", SHARES, "exact")

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw each sampler's ``mean``, ``low`` and ``high`` (classes,), and the ``observed`` class."""
        entries, observed, classes = part["entries"][:SERIES], part.get("observed"), part["classes"]
        shown = shown_classes(entries, observed, len(classes))
        marks: list[Mark] = []
        if observed is not None:
            edges = [at + side for at in np.flatnonzero(shown == observed) for side in (-0.5, 0.5)]
            ends = [-1.0] * len(edges), [2.0] * len(edges)
            marks.append(Band(edges, *ends, colour="pale", opacity=SHADE, label="observed"))
        apart = min(APART, WIDE / max(len(entries), 1))
        for place, sampler in enumerate(entries):
            mean, low, high = (np.asarray(sampler[name], dtype=float)[shown] for name in ("mean", "low", "high"))
            x = np.arange(len(shown)) + apart * (place - (len(entries) - 1) / 2)
            marks.append(whiskers(x, low, high, 2.4, colour=chain(place), label="95 % of draws"))
            marks.append(Points(x, mean, series_kind(place), label=sampler["name"]))
        names = [str(classes[k]) for k in shown]
        turned = sum(map(len, names)) > LONG
        axis = replace(self.x, ends=(-0.5, len(names) - 0.5), ticks=dict(enumerate(names)), turned=turned)
        return self.drawing(marks, x=axis, note=_note(part, entries, len(shown)))


def shown_classes(entries: list[dict[str, Any]], observed: int | None, classes: int) -> np.ndarray:
    """Return the numbers of the classes to show, in order."""
    if classes <= MOST_CLASSES or not entries:
        return np.arange(min(classes, MOST_CLASSES))
    most = np.nan_to_num(np.max([sampler["mean"] for sampler in entries], axis=0).astype(float))
    if observed is not None:
        most[observed] = math.inf
    return np.sort(np.argsort(-most, kind="stable")[:MOST_CLASSES])


def _note(part: dict[str, Any], entries: list[dict[str, Any]], shown: int) -> str:
    classes, observed = part["classes"], part.get("observed")
    entries = [sampler for sampler in entries if np.isfinite(sampler["mean"]).all()]
    words = [] if observed is None else [f"observed {classes[observed]}"]
    best = [int(np.argmax(sampler["mean"])) for sampler in entries]
    if len(entries) <= NAMED:
        pairs = zip(entries, best, strict=True)
        words += [f"{sampler['name']} {classes[k]} ({sampler['mean'][k]:.2f})" for sampler, k in pairs]
    elif observed is not None:
        words.append(f"the likeliest for {best.count(observed)} of {len(entries)}")
    if shown < len(classes):
        words.append(f"{shown} of {len(classes)} classes")
    return "; ".join(words)


def class_probabilities(source: Any) -> Drawing:
    """Plot class probabilities of one row by one or several methods, with 95 % intervals over the draws.

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
    entries = parts.entries(source)
    if not entries or "classes" not in source:
        raise BnnvizError("Give classes, observed and entries, as in the intervals of bnnviz.uncertainty.", "source")
    return ClassProbabilities().draw({**source, "entries": entries})
