"""Draw finished runs as HoloViews elements, which compose: ``+`` lays out, ``*`` overlays, ``.opts`` restyles.

Each function takes a `Run`, a recording (its name, its folder, or opened), an ArviZ tree, plain arrays, or a list of
these, and returns elements that both Bokeh and Matplotlib draw, for a light and for a dark page (``dark=True``).

>>> import numpy as np
>>> from bnnviz import plots
>>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))
>>> figure = plots.trace(draws, "x[0]") + plots.density(draws, "x[0]")

Importing this loads nothing heavy; HoloViews comes with the first figure. Figures that move with a run are not made
here but on a canvas of our own (`bnnviz.views`): HoloViews streams three frames a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors; what is imported, and when, the table below says
    from bnnviz.plots.brushing import linked
    from bnnviz.plots.chain.acf import acf
    from bnnviz.plots.chain.correlations import weights
    from bnnviz.plots.chain.density import density
    from bnnviz.plots.chain.mixing import mixing
    from bnnviz.plots.chain.pair import pair
    from bnnviz.plots.chain.rank import rank
    from bnnviz.plots.chain.ratios import ratios
    from bnnviz.plots.chain.thinning import thinning
    from bnnviz.plots.chain.trace import trace
    from bnnviz.plots.chain.trajectory import trajectory
    from bnnviz.plots.comparison.bands import bands
    from bnnviz.plots.comparison.published import published
    from bnnviz.plots.comparison.race import race
    from bnnviz.plots.comparison.sweep import sweep
    from bnnviz.plots.importance.density_ratio import density_ratio
    from bnnviz.plots.importance.functionals import functionals
    from bnnviz.plots.importance.history import history
    from bnnviz.plots.importance.population import population
    from bnnviz.plots.importance.weight_ess import weight_ess
    from bnnviz.plots.output import page, save
    from bnnviz.plots.predictive.attack import attack
    from bnnviz.plots.predictive.calibration import calibration
    from bnnviz.plots.predictive.confusion import confusion
    from bnnviz.plots.predictive.coverage import pit
    from bnnviz.plots.predictive.entropy import entropy
    from bnnviz.plots.predictive.functions import functions
    from bnnviz.plots.predictive.prediction import prediction, spread
    from bnnviz.plots.predictive.probability import class_probabilities, probability
    from bnnviz.plots.predictive.roc import roc
    from bnnviz.plots.predictive.squared_errors import squared_errors
    from bnnviz.plots.recorded import panels
    from bnnviz.plots.style import use

#: The public names by the modules that have them.
_NAMES = {
    "brushing": ("linked",),
    "chain.acf": ("acf",),
    "chain.correlations": ("weights",),
    "chain.density": ("density",),
    "chain.mixing": ("mixing",),
    "chain.pair": ("pair",),
    "chain.rank": ("rank",),
    "chain.ratios": ("ratios",),
    "chain.thinning": ("thinning",),
    "chain.trace": ("trace",),
    "chain.trajectory": ("trajectory",),
    "comparison.bands": ("bands",),
    "comparison.published": ("published",),
    "comparison.race": ("race",),
    "comparison.sweep": ("sweep",),
    "importance.density_ratio": ("density_ratio",),
    "importance.functionals": ("functionals",),
    "importance.history": ("history",),
    "importance.population": ("population",),
    "importance.weight_ess": ("weight_ess",),
    "output": ("page", "save"),
    "recorded": ("panels",),
    "predictive.attack": ("attack",),
    "predictive.calibration": ("calibration",),
    "predictive.confusion": ("confusion",),
    "predictive.coverage": ("pit",),
    "predictive.entropy": ("entropy",),
    "predictive.functions": ("functions",),
    "predictive.prediction": ("prediction", "spread"),
    "predictive.probability": ("class_probabilities", "probability"),
    "predictive.roc": ("roc",),
    "predictive.squared_errors": ("squared_errors",),
    "style": ("use",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bnnviz.plots' has no attribute {name!r}")
    import importlib

    from bnnviz import optional

    optional.check("holoviews", "Figures need", extra="plots")
    return getattr(importlib.import_module(f"bnnviz.plots.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
