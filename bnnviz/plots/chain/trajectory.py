"""Draw the path of one chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, plane, sources, style
from bnnviz.plots.parts import FramePart
from bnnviz.views.palette import EVENTS, KINDS, NOW, VISITED, Palette


def trajectory(
    source: Any,
    variables: str | Sequence[str] | None = None,
    *,
    chain: int = 0,
    draws: int = 200,
    dark: bool = False,
) -> hv.Overlay:
    """Draw the path of a chain in a plane, its events, and the density where it is known.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array or dict
        A run shows the end of its continuous path in the plane that it is watched in, as a recording that has kept
        frames does; of other sources, and where variables are given, straight lines join the draws.
    variables : (str, str), optional
        The plane of the draws.
    chain : int, default 0
        Whose draws are joined.
    draws : int, default 200
        That are joined at most: the last ones.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If there is no path and draws cannot be read, or there is no such chain or variable.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> run = bnnviz.sample("banana", "hmc", draws=60, warmup=50, chains=1)
    >>> plots.trajectory(run, draws=60)
    :Overlay...
    """
    palette = style.palette_of(dark)
    if variables is None:
        found = _watched(source)
        if found is not None:
            return _path(found, palette)
    return _joined(source, variables, chain, draws, palette)


def _watched(source: Any) -> FramePart | None:
    """Return the path that a source shows; None where it shows none, and its draws are joined."""
    if isinstance(source, Mapping) and "event_x" not in source:
        return None
    if not isinstance(source, Mapping) and not hasattr(source, "frame"):
        recording = sources.recording_of(source)
        if recording is None or recording.frame_files()[0] is None:
            return None
    try:
        return parts.part(source, "path", "a path")
    except BnnvizError:
        return None


def _path(found: FramePart, palette: Palette) -> hv.Overlay:
    scene, part = found
    x, y = (hv.Dimension((part[f"{axis}_label"], part[f"{axis}_label"])) for axis in ("x", "y"))
    of_scene = scene.get("plane") or {}
    same = (of_scene.get("x_label"), of_scene.get("y_label")) == (part["x_label"], part["y_label"])
    known = part.get("contour") if part.get("contour") is not None else of_scene.get("contour") if same else None
    drawn = plane.contours(known, x, y, palette)
    drawn.append(style.line(hv.Path([np.column_stack([part["x"], part["y"]])], [x, y]), palette, palette.ink, 2.0))
    if len(part.get("visited_x", ())):
        visited = hv.Points((part["visited_x"], part["visited_y"]), [x, y], label=VISITED.label)
        drawn.append(style.kind(visited, palette, VISITED, 9))
    for code in EVENTS:
        own = np.asarray(part["event_kind"]) == code
        if own.any():
            events = hv.Points((part["event_x"][own], part["event_y"][own]), [x, y], label=KINDS[code].label)
            drawn.append(style.kind(events, palette, KINDS[code], 8))
    now = hv.Points(([part["now_x"]], [part["now_y"]]), [x, y], label=NOW.label)
    drawn.append(style.kind(now, palette, NOW, 14))
    return style.finish(hv.Overlay(drawn), palette, size=style.SQUARE, room=90, legend="right")


def _joined(source: Any, variables: str | Sequence[str] | None, chain: int, most: int, palette: Palette) -> hv.Overlay:
    found = sources.one(source)
    names = found.chosen(variables, 2)
    if len(names) != 2:
        raise BnnvizError(f"A path lies in the plane of two variables; there is {', '.join(names)}.", "variables")
    if not 0 <= chain < found.shape[0]:
        raise BnnvizError(f"There is no chain {chain}; choose 0 to {found.shape[0] - 1}.", "chain")
    if most < 2:
        raise BnnvizError(f"draws = {most} must be 2 at least.", "draws")
    x, y = (hv.Dimension((name, name)) for name in names)
    points = np.column_stack([found.of(name)[chain, -most:] for name in names])
    path = style.line(hv.Path([points], [x, y]), palette, palette.ink, 1.2, alpha=0.7)
    dots = style.marks(hv.Points(points, [x, y], label="draws"), palette, palette.blue, size=5)
    last = style.kind(hv.Points(points[-1:], [x, y], label="last"), palette, NOW, 14)
    return style.finish(hv.Overlay([path, dots, last]), palette, size=style.SQUARE, room=90, legend="right")
