"""Draw ROC curves: the true positive rate against the false positive rate."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SERIES, SQUARE, Axis, Band, Drawing, Line, Mark, chain, dash_of, diagonal

OPACITIES = (0.16, 0.2, 0.26)  # of the envelopes, the widest first; they overlap
SAME = 1e-6  # a smaller spread of areas is rounding
SHADE = 0.14  # of the one envelope of each of several curves


class Roc(Figure):
    """Plot the mean ROC curve over draws, with envelopes for a single method."""

    name, title = "roc", "ROC curve"
    needs = ("roc",)
    x, y = (Axis(f"{side} positive rate", (-0.01, 1.01), "exact") for side in ("false", "true"))
    size = SQUARE
    always = (diagonal("chance"),)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``curves``, as `bnnviz.diagnostics.roc_envelopes` returns them, each with a ``name``."""
        curves = part["curves"][:SERIES]
        alone = len(curves) == 1
        marks: list[Mark] = []
        notes = []
        for place, curve in enumerate(curves):
            levels, look, spread = np.asarray(curve["levels"]), {"colour": chain(place)}, ""
            if curve["auc_sd"] > SAME:
                spread = f" ± {curve['auc_sd']:.2g}"
                shown = np.argsort(levels)[::-1] if alone else [np.argmin(np.abs(levels - 0.95))]
                for level, opacity in zip(shown, OPACITIES if alone else (SHADE,), strict=False):
                    ends, within = (
                        (curve["low"][level], curve["high"][level]),
                        f"{100 * levels[level]:g}% of the draws",
                    )
                    marks.append(Band(curve["fpr"], *ends, **look, opacity=opacity, label=within))
            dash, label = () if alone else dash_of(place), f"{curve['name']}, AUC {curve['auc_mean']:.3f}{spread}"
            marks.append(Line(curve["fpr"], curve["mean"], 2.4, dash, **look, label=label))
            notes.append(f"{'AUC' if alone else curve['name']} {curve['auc_mean']:.4f}{spread}")
        return self.drawing(marks, note="; ".join(notes))


def roc(source: Any, observed: Any = None, *, positive: int | None = None) -> Drawing:
    """Plot the mean ROC curve over draws, with envelopes that contain 80, 95 and 99% of the curves.

    For several sources, only the 95% envelope is shown. The legend contains the mean and standard deviation over draws
    of the area under the curve.

    Parameters
    ----------
    source : Run, Recording, path, array, list or dict
        A classification network; probabilities (rows, classes) or (draws, rows, classes); a dict of these by name; or
        the part ``roc`` of a frame.
    observed : array_like, shape (rows,), optional
        Observed classes. Required if ``source`` contains probabilities.
    positive : int, optional
        The positive class. The default for two classes is class 1.

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
    if (drawing := parts.given(Roc(), source, "curves")) is not None:
        return drawing
    curves = []
    for each in parts.each(source, observed):
        count = each.probabilities.shape[2]
        chosen = 1 if positive is None and count == 2 else positive
        if chosen is None or not 0 <= chosen < count:
            raise BnnvizError(f"positive is the class to find, 0 to {count - 1}; it is {positive}.", "positive")
        scores, of_class = each.probabilities[..., chosen], each.observed == chosen
        curves.append(diagnostics.roc_envelopes(scores, of_class, each.weights)._asdict() | {"name": each.name})
    return Roc().draw({"curves": curves})
