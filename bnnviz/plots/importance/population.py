"""Draw a population of proposals with their weighted draws."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.plots import parts, plane, style
from bnnviz.views.importance.population import MEAN, SURVIVOR, ellipses
from bnnviz.views.palette import Palette

_SMALLEST, _LARGEST = 3.0, 15.0  # pixels of a draw's mark
_RESAMPLED, _MOVED = 2, 4  # phases of an iteration


def population(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw ellipses of two standard deviations of the proposals, draws sized by their weights, and survivors.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A run of a sampler with a population, a recording of one that has kept frames, or the part ``population`` of a
        frame.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the sampler has no population, or has not drawn yet.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> run = bnnviz.sample("banana", "pmcnet", draws=40)
    >>> plots.population(run)
    :Overlay...
    """
    scene, part = parts.part(source, "population", "a population")
    palette = style.palette_of(dark)
    x, y = (hv.Dimension((part[f"{axis}_label"], part[f"{axis}_label"])) for axis in ("x", "y"))
    of_scene = scene.get("plane") or {}
    same = (of_scene.get("x_label"), of_scene.get("y_label")) == (part["x_label"], part["y_label"])
    drawn = plane.contours(of_scene.get("contour") if same else None, x, y, palette)
    drawn += _draws(part, x, y, palette)
    outlines = hv.Path(list(ellipses(part["mean_xy"], part["root"])), [x, y], label="proposal, 2 sd")
    drawn.append(style.line(outlines, palette, palette.purple, 1.5))
    drawn.append(style.kind(hv.Points(part["mean_xy"], [x, y], label=MEAN.label), palette, MEAN, 7))
    drawn += _moves(part, x, y, palette)
    title = f"iteration {int(part['iteration']):,}"
    return style.finish(hv.Overlay(drawn), palette, title=title, size=style.SQUARE, room=150, legend="right")


def _draws(part: dict[str, Any], x: hv.Dimension, y: hv.Dimension, palette: Palette) -> list[Any]:
    """Return the draws: of those with a weight the area of a mark is in proportion to it."""
    at = np.asarray(part["draw_xy"])
    if not len(at):
        return []
    share = np.sqrt(np.clip(np.asarray(part["draw_size"], dtype=float)[: len(at)], 0.0, 1.0))
    size = _SMALLEST + (_LARGEST - _SMALLEST) * share
    points = hv.Points((*at.T, size, (size * style.POINT) ** 2), [x, y], ["width", "area"], label="draw, by weight")
    made = style.marks(points, palette, palette.blue, alpha=0.45, width=0.4)
    return [style.apply(made, {"size": hv.dim("width")}, {"s": hv.dim("area")})]


def _moves(part: dict[str, Any], x: hv.Dimension, y: hv.Dimension, palette: Palette) -> list[Any]:
    """Return who survives resampling, and the steps along the gradient."""
    phase, drawn = int(part["phase"]), []
    landed, ends = np.asarray(part["landed_xy"]), np.asarray(part["end_xy"])
    survives = np.asarray(part["survives"], dtype=bool)
    if phase >= _RESAMPLED and survives.any():
        points = hv.Points(landed[survives], [x, y], label=SURVIVOR.label)
        drawn.append(style.kind(points, palette, SURVIVOR, 9))
    taken = np.asarray(part["halvings"]) >= 0
    if phase == _MOVED and taken.any():
        steps = hv.Segments((*landed[taken].T, *ends[taken].T), [x, y, "x1", "y1"], label="gradient step")
        drawn.append(style.line(steps, palette, palette.green, 2.2))
    return drawn
