"""Plot finished runs as HoloViews elements. Combine them by ``+`` and ``*`` and style them by ``.opts``.

Each function takes a `Run`, a recording (its name, its folder, or opened), an ArviZ tree, plain arrays, or a list of
these, and returns elements for Bokeh and Matplotlib, with a light or a dark theme (``dark=True``).

>>> import numpy as np
>>> from bnnviz import plots
>>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))
>>> figure = plots.trace(draws, "x[0]") + plots.density(draws, "x[0]")

The functions are defined in the modules of `bnnviz.figures`. HoloViews is imported when the first figure is created.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bnnviz import optional
from bnnviz.figures import MODULES

_STILL = {"linked": "brushing", "page": "output", "save": "output", "use": "style"}
_HOMES = {
    name: module
    for name, module in MODULES.items()
    if f"\ndef {name}(" in (Path(__file__).parents[1] / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8")
} | {name: f"bnnviz.figures.still.{module}" for name, module in _STILL.items()}
#: What the documentation of all figures has between the parameters and the example.
_SHARED = """
    dark : bool, default False
        Whether to use the dark theme.

    Returns
    -------
    hv.Overlay, or hv.Layout of several panels

    Raises
    ------
    BnnvizError
        If the source cannot be read or does not contain the required data, or an argument is invalid.

    Examples
"""

__all__ = list(_HOMES)


@functools.cache
def _rendered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that renders the drawings of another one."""

    @functools.wraps(function)
    def figure(*args: Any, dark: bool = False, **options: Any) -> Any:
        from bnnviz.figures.still.render import shown

        return shown(function(*args, **options), dark)

    figure.__doc__ = function.__doc__.replace("\n\n    Examples\n", _SHARED, 1)
    plain = inspect.signature(function)
    added = inspect.Parameter("dark", inspect.Parameter.KEYWORD_ONLY, default=False, annotation="bool")
    figure.__signature__ = plain.replace(
        parameters=[*plain.parameters.values(), added], return_annotation="hv.Overlay | hv.Layout"
    )
    return figure


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bnnviz.plots' has no attribute {name!r}")
    optional.check("holoviews", "Figures need", extra="plots")
    found = getattr(importlib.import_module(_HOMES[name]), name)
    return found if name in _STILL else _rendered(found)


def __dir__() -> list[str]:
    return sorted(__all__)
