"""Draw recorded parts of frames, each by the figure that it is made for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import holoviews as hv

from bnnviz.errors import BnnvizError
from bnnviz.plots import style
from bnnviz.plots.chain.acf import acf
from bnnviz.plots.chain.correlations import weights
from bnnviz.plots.chain.density import density
from bnnviz.plots.chain.ratios import ratios
from bnnviz.plots.chain.thinning import thinning
from bnnviz.plots.chain.trace import trace
from bnnviz.plots.chain.trajectory import trajectory
from bnnviz.plots.comparison.bands import bands
from bnnviz.plots.comparison.race import race
from bnnviz.plots.importance.density_ratio import density_ratio
from bnnviz.plots.importance.functionals import functionals
from bnnviz.plots.importance.history import history
from bnnviz.plots.importance.population import population
from bnnviz.plots.importance.weight_ess import weight_ess
from bnnviz.plots.predictive.attack import attack
from bnnviz.plots.predictive.calibration import calibration
from bnnviz.plots.predictive.confusion import confusion
from bnnviz.plots.predictive.entropy import entropy
from bnnviz.plots.predictive.prediction import prediction, spread
from bnnviz.plots.predictive.probability import class_probabilities, probability
from bnnviz.plots.predictive.roc import roc
from bnnviz.plots.predictive.squared_errors import squared_errors

ACROSS = 2

#: What draws a part, by the name of the view that shows it live.
FIGURES: dict[str, Callable[..., Any]] = {
    "acf": acf,
    "attack": partial(attack, figure="accuracy"),
    "attack_entropy": partial(attack, figure="entropy"),
    "chances": probability,
    "confusion": confusion,
    "curves": race,
    "density_ratio": density_ratio,
    "digit": class_probabilities,
    "entropy": entropy,
    "errors2": squared_errors,
    "functionals": functionals,
    "gauge": weight_ess,
    "history": history,
    "marginal": density,
    "population": population,
    "prediction": prediction,
    "ratios": ratios,
    "reliability": calibration,
    "roc": roc,
    "spread": spread,
    "thinning": thinning,
    "trace": trace,
    "trajectory": trajectory,
    "weights": weights,
}
_BAND = "band"  # figures of this kind share their axes


def panels(source: Sequence[tuple[str, str, dict[str, Any]]], *, dark: bool = False) -> hv.Overlay | hv.Layout:
    """Draw recorded parts of frames in rows of two, each under its heading.

    Parameters
    ----------
    source : sequence of (str, str, dict)
        Heading, view and part of each, as the records of experiments have them.
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout of several

    Raises
    ------
    BnnvizError
        If there is none, or no figure of such a view.

    Examples
    --------
    >>> from bnnviz import plots
    >>> part = {"matrix": [[8, 2], [1, 9]], "classes": ["cat", "dog"]}
    >>> plots.panels([("HMC", "confusion", part), ("SGLD", "confusion", part)])
    :Layout...
    """
    found = list(source)
    unknown = [view for _, view, _ in found if view not in FIGURES and view != _BAND]
    if not found or unknown:
        why = f"no figure is called {unknown[0]!r}" if unknown else "there is no part"
        raise BnnvizError(f"Panels need parts of frames: {why}.", "source")
    if found[0][1] == _BAND:
        return bands([part for _, _, part in found], dark=dark)
    figures = []
    for heading, view, part in found:
        figure = FIGURES[view](part, dark=dark)
        own = style.title_of(figure)
        figures.append(style.apply(figure, title=f"{heading}: {own}" if own else heading))
    return style.layout(figures, across=min(ACROSS, len(figures)))
