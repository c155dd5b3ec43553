"""Draw the path of one chain in a plane, its events, and the density if known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts, sources
from bnnviz.figures.marks import SQUARE, Arrows, Axis, Drawing, Line, Mark, Points, chain, extent, future
from bnnviz.figures.palette import EVENTS, KINDS, KNOWN, NOW, PICKED, VISITED, Kind
from bnnviz.figures.plane import PlaneFigure

HERE = Kind("here", "dot", "ink", True)
DRAW = Kind("draw", "circle", "blue", True)
OLDEST_MARK = 0.35
LATEST = 10  # events, with the path between them
DOT_OPACITY = 0.35
BINS, SHARE = 30, 0.12  # of a histogram at an axis, and its height as a share of the plane
ARROW = 34  # pixels


class Trajectory(PlaneFigure):
    """Draw the path in two coordinates or two principal components, older parts fading."""

    name = "trajectory"
    title = "Trajectory"
    needs = ("path",)
    place = 0
    touch = {"picks": True}

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw the path ``x``, ``y`` through its last events, where the chain is ``now``, and draws with marginals."""
        part = part | _latest(part)
        dots = tuple(np.asarray(part.get(f"draw_{axis}", ()), dtype=float) for axis in "xy")
        futures = part.get("futures", ())
        seen = {
            axis: (part[axis], part[f"event_{axis}"], [part[f"now_{axis}"]], at, *(other[axis] for other in futures))
            for axis, at in zip("xy", dots, strict=True)
        }
        plane = self.plane(part, {axis: part[f"now_{axis}"] for axis in "xy"}, **seen)
        here = [part["now_x"]], [part["now_y"]]
        marks: list[Mark] = [
            *plane.pop("marks"),
            Points(*dots, DRAW, 4, width=0, alpha=np.full(len(dots[0]), DOT_OPACITY), label=DRAW.label),
            *_marginals(*dots),
            Line(part["x"], part["y"], 2.4, fading=True, label="path"),
            *(
                Line(other["x"], other["y"], 2.4, colour=chain(future(other["letter"])), label=other["letter"])
                for other in futures
            ),
            *self._events(part),
            _named(part, "visited", VISITED, 9),
            Arrows(*here, [part["now_dx"]], [part["now_dy"]], ARROW, colour=NOW.role),
            *self._picked(),
            Points(*here, NOW, 19, width=2.6, label=NOW.label),
            Points(*here, HERE, 12),
        ]
        note = self.selection.get("text", "") or part.get("awaits", "")
        words = f"the path of one chain with its last {len(part['event_kind'])} events"
        return Drawing(marks, note=note, words=words, size=SQUARE, **plane)

    def _events(self, part: dict[str, Any]) -> list[Mark]:
        if "events" not in self.scene.get("emits", ("events",)):
            return []
        kinds, steps = np.asarray(part["event_kind"]), part.get("event_step")
        alpha = np.linspace(OLDEST_MARK, 1.0, len(kinds))
        marks: list[Mark] = []
        for code in EVENTS:
            own = kinds == code
            ids = None if steps is None else np.asarray(steps)[own]
            at = np.asarray(part["event_x"])[own], np.asarray(part["event_y"])[own]
            marks.append(Points(*at, KINDS[code], alpha=alpha[own], ids=ids, label=KINDS[code].label))
        return marks

    def _picked(self) -> list[Mark]:
        chosen = self.selection
        return [_named(chosen, "known", KNOWN, 5), _named(chosen, "path", PICKED, 8)]


def _named(source: dict[str, Any], name: str, kind: Kind, size: float) -> Points:
    """Return points that are not always known, and have an entry in the legend only then."""
    label = kind.label if f"{name}_x" in source else ""
    return Points(source.get(f"{name}_x", ()), source.get(f"{name}_y", ()), kind, size, 1.0, label=label)


def _latest(part: dict[str, Any]) -> dict[str, Any]:
    """Return the last events of a path, and the path from the first of them on."""
    found = {name: np.asarray(part[name])[-LATEST:] for name in part if name.startswith("event_")}
    x, y = np.asarray(part["x"]), np.asarray(part["y"])
    if len(part["event_x"]) > LATEST:
        here = np.flatnonzero((x == found["event_x"][0]) & (y == found["event_y"][0]))
        first = int(here[-1]) if here.size else 0
        found |= {"x": x[first:], "y": y[first:]}
    return found


def _marginals(x: np.ndarray, y: np.ndarray) -> list[Mark]:
    """Draw a histogram of the draws along each axis."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) < BINS:
        return []
    curves = []
    for along, across in ((x, y), (y, x)):
        counts, edges = np.histogram(along, BINS)
        height = SHARE * np.ptp(across) * counts / counts.max()
        curves.append((np.repeat(edges, 2)[1:-1], across.min() + np.repeat(height, 2)))
    (x_at, x_height), (y_at, y_height) = curves
    return [Line(x_at, x_height, 1.4, colour="blue", label="marginal"), Line(y_height, y_at, 1.4, colour="blue")]


def trajectory(
    source: Any,
    variables: str | Sequence[str] | None = None,
    *,
    chain: int = 0,
    draws: int = 200,
) -> Drawing:
    """Draw the path of a chain in a plane, its events, and the density if known.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array or dict
        A run, or a recording with frames, shows the end of its continuous path in the plane in which it is watched. For
        other sources, and where variables are given, straight lines join the draws.
    variables : (str, str), optional
        The plane of the draws.
    chain : int, default 0
        Whose draws are joined.
    draws : int, default 200
        The number of joined draws at most: the last ones.

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
    watched = _watched(source) if variables is None else None
    return watched or _joined(source, variables, chain, draws)


def _watched(source: Any) -> Drawing | None:
    """Return the path that a source shows; None where it shows none, and its draws are joined."""
    if isinstance(source, Mapping) and "event_x" not in source:
        return None
    if not isinstance(source, Mapping) and not hasattr(source, "frame"):
        recording = sources.recording_of(source)
        if recording is None or recording.frame_files()[0] is None:
            return None
    try:
        return parts.drawn(Trajectory(), source, "a path")
    except BnnvizError:
        return None


def _joined(source: Any, variables: str | Sequence[str] | None, number: int, most: int) -> Drawing:
    found = sources.one(source)
    names = found.chosen(variables, 2)
    if len(names) != 2:
        raise BnnvizError(f"A path needs the plane of two variables; got {', '.join(names)}.", "variables")
    if not 0 <= number < found.shape[0]:
        raise BnnvizError(f"There is no chain {number}; choose 0 to {found.shape[0] - 1}.", "chain")
    if most < 2:
        raise BnnvizError(f"draws = {most} must be 2 at least.", "draws")
    x, y = (found.of(name)[number, -most:] for name in names)
    marks = [
        Line(x, y, 1.2, opacity=0.7),
        Points(x, y, size=5, label="draws"),
        Points(x[-1:], y[-1:], NOW, 14, label="last"),
    ]
    return Drawing(marks, x=Axis(names[0], extent(x)), y=Axis(names[1], extent(y)), size=SQUARE)
