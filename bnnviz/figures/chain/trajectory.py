"""Draw the path of one chain in a plane, its events, and the density if known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bnnviz.figures import parts
from bnnviz.figures.marks import SQUARE, Area, Arrows, Drawing, Line, Mark, Points, chain, future
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

    name, title = "trajectory", "Trajectory"
    needs = ("path",)
    place = 0
    touch = {"picks": True}

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw the path ``x``, ``y`` through its last events, where the chain is ``now``, and draws with marginals."""
        part = _latest(part)
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
            *_marginals(dots, (plane["x"].ends, plane["y"].ends)),
            Line(part["x"], part["y"], 2.4, fading=True, label="path"),
            *(
                Line(other["x"], other["y"], 2.4, colour=chain(future(other["letter"])), label=other["letter"])
                for other in futures
            ),
            *(_events(part) if "events" in self.scene.get("emits", ("events",)) else ()),
            _named(part, "visited", VISITED, 9),
            Arrows(*here, [part["now_dx"]], [part["now_dy"]], ARROW, colour=NOW.role),
            _named(self.selection, "known", KNOWN, 5),
            _named(self.selection, "path", PICKED, 8),
            Points(*here, NOW, 19, width=2.6, label=NOW.label),
            Points(*here, HERE, 12),
        ]
        note = self.selection.get("text", "") or part.get("awaits", "")
        words = f"the path of one chain with its last {len(part['event_kind'])} events"
        return Drawing(marks, note=note, words=words, size=SQUARE, **plane)


def _events(part: dict[str, Any]) -> list[Mark]:
    alpha = np.linspace(OLDEST_MARK, 1.0, len(part["event_kind"]))
    marks: list[Mark] = []
    for code in EVENTS:
        own = part["event_kind"] == code
        ids = part["event_step"][own] if "event_step" in part else None
        at = part["event_x"][own], part["event_y"][own]
        marks.append(Points(*at, KINDS[code], alpha=alpha[own], ids=ids, label=KINDS[code].label))
    return marks


def _named(source: dict[str, Any], name: str, kind: Kind, size: float) -> Points:
    """Return points that are not always known, and have an entry in the legend only then."""
    label = kind.label if f"{name}_x" in source else ""
    return Points(source.get(f"{name}_x", ()), source.get(f"{name}_y", ()), kind, size, 1.0, label=label)


def _latest(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part with the last events of its path alone, and the path from the first of them on."""
    found = part | {name: np.asarray(part[name])[-LATEST:] for name in part if name.startswith("event_")}
    x, y = np.asarray(part["x"]), np.asarray(part["y"])
    here = np.flatnonzero((x == found["event_x"][0]) & (y == found["event_y"][0])) if len(found["event_x"]) else []
    first = int(here[-1]) if len(here) and len(part["event_x"]) > LATEST else 0
    return found | {"x": x[first:], "y": y[first:]}


def _marginals(draws: Sequence[np.ndarray], ends: Sequence[Any]) -> list[Mark]:
    """Draw a histogram of the draws along each axis, on the lower end of the other one."""
    draws = np.stack(draws)
    draws = draws[:, np.isfinite(draws).all(0)]
    if draws.shape[1] < BINS:
        return []
    rings = []
    for along, (low, high) in zip(draws, reversed(ends), strict=True):
        counts, edges = np.histogram(along, BINS)
        height = np.pad(np.repeat(SHARE * (high - low) * counts / counts.max(), 2), 1)
        rings.append(np.column_stack([np.repeat(edges, 2), low + height]))
    look = {"colour": "pale", "opacity": 0.4}
    return [Area([[rings[0]]], label="marginal", **look), Area([[rings[1][:, ::-1]]], **look)]


def trajectory(source: Any) -> Drawing:
    """Plot the last part of the path of a chain in two dimensions, with its events.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A run or recording, or the part ``path`` of a frame.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> run = bnnviz.sample("banana", "hmc", draws=60, warmup=50, chains=1)
    >>> plots.trajectory(run)
    :Overlay...
    """
    return parts.drawn(Trajectory(), source, "a path")
