"""Draw live views as they are now: `execute_notebooks` runs this in the kernel, where the runs are.

A kept notebook has no kernel that could feed a widget; its place is taken by a picture of the same figures.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from IPython.display import Image, display
from ipywidgets import Widget

from bnnviz import plots
from bnnviz.errors import BnnvizError
from bnnviz.plots import style

ACROSS, DPI = 2, 80
CURVES = "curves"  # the view of a race that is not a picture of one lane


def show(models: list[str]) -> None:
    """Display a picture of each live view, by the numbers that its widgets have."""
    plots.use("matplotlib")
    for model in models:
        display(Image(_drawn(Widget.widgets[model])))


def _drawn(live: Any) -> bytes:
    figures = _of_race(live) if "lanes" in live._scene else _of_run(live)
    with tempfile.TemporaryDirectory() as folder:
        return plots.save(style.layout(figures, ACROSS), Path(folder) / "still.png", dpi=DPI).read_bytes()


def _of_run(live: Any) -> list[Any]:
    figures = []
    for view in live._shown:
        try:
            figures.append(getattr(plots, view.name)(live._run))
        except BnnvizError:  # there is nothing to show of it yet
            continue
    return figures


def _of_race(live: Any) -> list[Any]:
    lanes = [view for view in live._shown if view.name != CURVES]
    names = live._run.spec.names()
    paths = [plots.trajectory(live._run.lane_draws(place)).opts(title=names[place]) for place in range(len(lanes))]
    return [*paths, plots.race(live._run)]
