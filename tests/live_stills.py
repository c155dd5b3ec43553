"""Draw live views as they are now: `execute_notebooks` runs this in the kernel, where the runs are.

A kept notebook has no kernel that could feed a widget; its place is taken by a picture of the same figures.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

from IPython import display
from ipywidgets import Widget
from PIL import Image

from bnnviz import plots
from bnnviz.errors import BnnvizError

ACROSS, DPI = 2, 75
OF_ONE, MANY = ("trace", "acf", "density"), 4  # variables; of many of them the live view shows a component


def show(models: list[str]) -> None:
    """Display a picture of each live view, by the numbers that its widgets have."""
    plots.use("matplotlib")
    for model in models:
        live = Widget.widgets[model]
        figures = _of_race(live) if "entries" in live._scene else _of_run(live)
        display.display(display.Image(_beside([_drawn(figure) for figure in figures])))


def _drawn(figure: Any) -> Image.Image:
    with tempfile.TemporaryDirectory() as folder:
        return Image.open(io.BytesIO(plots.save(figure, Path(folder) / "still.png", dpi=DPI).read_bytes()))


def _beside(pictures: list[Image.Image]) -> bytes:
    """Return one picture of several, in rows."""
    width, height = (max(getattr(picture, side) for picture in pictures) for side in ("width", "height"))
    rows = -(-len(pictures) // ACROSS)
    whole = Image.new("RGB", (min(ACROSS, len(pictures)) * width, rows * height), "white")
    for place, picture in enumerate(pictures):
        row, column = divmod(place, ACROSS)
        whole.paste(picture, (column * width, row * height))
    made = io.BytesIO()
    whole.save(made, "png", optimize=True)
    return made.getvalue()


def _of_run(live: Any) -> list[Any]:
    figures = []
    first = live._scene["names"][0] if live._scene["dim"] < MANY else "PC 1"
    for name in live._shown:
        draw = getattr(plots, name, None)  # plots has no gauge
        if draw is None:
            continue
        try:
            figures.append(draw(live._run, first) if name in OF_ONE else draw(live._run))
        except BnnvizError:  # there is nothing to show of it yet
            continue
    if not figures:
        raise SystemExit(f"{live!r} shows nothing at the end of the notebook: let its run make draws.")
    return figures


def _of_race(live: Any) -> list[Any]:
    names = live._run.spec.names()
    paths = [plots.pair(live._run.entry_draws(place)[..., :2]).opts(title=name) for place, name in enumerate(names)]
    return [*paths, plots.race(live._run)]
