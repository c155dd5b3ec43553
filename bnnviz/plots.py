"""Draw finished runs as HoloViews elements, which compose: ``+`` lays out, ``*`` overlays, ``.opts`` restyles.

Each function takes a `Run`, a recording (its name, its folder, or opened), an ArviZ tree, plain arrays, or a list of
these, and returns elements that both Bokeh and Matplotlib draw, for a light and for a dark page (``dark=True``).

>>> import numpy as np
>>> from bnnviz import plots
>>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))
>>> figure = plots.trace(draws, "x[0]") + plots.density(draws, "x[0]")

The functions are those of the modules of `bnnviz.figures`. Importing this loads nothing heavy; HoloViews is imported
with the first figure.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from bnnviz import optional

_FOLDERS = ("chain", "predictive", "importance", "comparison")
_STILL = {"linked": "brushing", "page": "output", "save": "output", "use": "style"}
_HOMES = {
    path.stem: f"bnnviz.figures.{path.parent.name}.{path.stem}"
    for folder in _FOLDERS
    for path in sorted((Path(__file__).parent / "figures" / folder).glob("[a-z]*.py"))
    if f"\ndef {path.stem}(" in path.read_text(encoding="utf-8")
} | {name: f"bnnviz.figures.still.{module}" for name, module in _STILL.items()}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bnnviz.plots' has no attribute {name!r}")
    optional.check("holoviews", "Figures need", extra="plots")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
