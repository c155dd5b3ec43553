"""Draw how many of the positive rows are found, against how many of the others are taken for one."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.plots.parts import ClassPredictions
from bnnviz.views.palette import Palette

_OPACITIES = (0.16, 0.2, 0.26)  # of the envelopes, the widest first; they lie on each other
_SHADE = 0.14  # of the one envelope of each of several curves
_SAME = 1e-6  # a smaller spread of areas is rounding


def roc(source: Any, observed: Any = None, *, positive: int | None = None, dark: bool = False) -> hv.Overlay:
    """Draw the mean of the draws' ROC curves, with envelopes that hold 80, 95 and 99 % of them.

    Of several sources the envelope of 95 % alone is drawn. The legend has the area under the curve, and its standard
    deviation over the draws.

    Parameters
    ----------
    source : Run, Recording, path, array, list or dict
        Networks with classes; or probabilities (rows, classes) or (draws, rows, classes); or a dict of such by their
        names; or the part ``roc`` of a frame.
    observed : array_like, shape (rows,), optional
        Class numbers, where probabilities are given.
    positive : int, optional
        The class that is to be found among all; of two classes the default is class 1.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the source is no classifier, all rows are of one kind, of several classes none is named, or scikit-learn is
        not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> observed = np.arange(200) % 2
    >>> scores = 1 / (1 + np.exp(-(1.5 * observed - 0.75 + rng.normal(size=200) + 0.5 * rng.normal(size=(20, 200)))))
    >>> plots.roc(np.stack([1 - scores, scores], -1), observed)
    :Overlay...
    """
    palette = style.palette_of(dark)
    curves = parts.lanes(source, "curves")
    if curves is None:
        curves = [_curve_of(each, positive) for each in parts.each(source, observed)]
    x, y = hv.Dimension(("fpr", "false positive rate")), hv.Dimension(("tpr", "true positive rate"))
    drawn = [style.line(hv.Curve(([0, 1], [0, 1]), x, y, label="chance"), palette, palette.muted, 1.2, (4, 4))]
    alone = len(curves) == 1
    for place, curve in enumerate(curves):
        colour, dash, _ = style.series(palette, place)
        drawn += _nested(curve, x, y, palette) if alone else _envelope(curve, x, y, palette, colour)
        mean = hv.Curve((curve["fpr"], curve["mean"]), x, y, label=_label(curve))
        drawn.append(style.line(mean, palette, colour, 2.4, () if alone else dash))
    ends = {"xlim": (-0.01, 1.01), "ylim": (-0.01, 1.01)}
    return style.finish(hv.Overlay(drawn), palette, size=style.SQUARE, room=190, legend="right", **ends)


def _curve_of(each: ClassPredictions, positive: int | None) -> dict[str, Any]:
    count = each.probabilities.shape[2]
    chosen = 1 if positive is None and count == 2 else positive
    if chosen is None or not 0 <= chosen < count:
        raise BnnvizError(f"positive is the class that is to be found, 0 to {count - 1}; it is {positive}.", "positive")
    found = diagnostics.roc_envelopes(each.probabilities[..., chosen], each.observed == chosen, each.weights)
    return found._asdict() | {"name": each.name}


def _label(curve: dict[str, Any]) -> str:
    spread = f" ± {curve['auc_sd']:.2g}" if curve["auc_sd"] > _SAME else ""
    return f"{curve['name']}, AUC {curve['auc_mean']:.3f}{spread}"


def _nested(curve: dict[str, Any], x: Any, y: Any, palette: Palette) -> list[Any]:
    """Return the envelopes of the one curve, the widest first."""
    if curve["auc_sd"] <= _SAME:
        return []
    order = np.argsort(curve["levels"])[::-1][: len(_OPACITIES)]
    drawn = []
    for level, opacity in zip(order, _OPACITIES, strict=False):
        ends = (curve["fpr"], curve["low"][level], curve["high"][level])
        area = hv.Area(ends, x, [y, "high"], label=f"{100 * curve['levels'][level]:g} % of the draws")
        drawn.append(style.band(area, palette, palette.blue, opacity))
    return drawn


def _envelope(curve: dict[str, Any], x: Any, y: Any, palette: Palette, colour: str) -> list[Any]:
    if curve["auc_sd"] <= _SAME:
        return []
    near = int(np.argmin(np.abs(np.asarray(curve["levels"]) - 0.95)))
    area = hv.Area((curve["fpr"], curve["low"][near], curve["high"][near]), x, [y, "high"])
    return [style.band(area, palette, colour, _SHADE)]
