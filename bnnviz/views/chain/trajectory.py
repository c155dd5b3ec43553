"""Draw the path of one chain in a plane, its events, and the density where it is known."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import columns
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.futures import FutureLines
from bnnviz.views.palette import DARK, EVENTS, KINDS, KNOWN, LIGHT, NOW, PICKED, VISITED, Kind, legend, mark_html
from bnnviz.views.plane import PlaneView
from bnnviz.views.pointer import Pointer

HERE = Kind("here", "dot", "ink", True)
OLDEST_MARK = 0.35
ARROW = 34  # pixels
_STEP_PAGE = 4096  # as in pointer.js
_MARKS = ("x", "y", "kind", "alpha", "now", "dx", "dy", "step_high", "step_low")


class TrajectoryView(PlaneView):
    """Draw the path in two coordinates or two principal components, older parts fading."""

    name = "trajectory"
    title = "Trajectory"
    needs = ("path",)

    def _build(self) -> None:
        self._build_plane()
        self._picked = self._awaits = ""
        self._events, self._eventful = 0, True
        self.source, self.marks = PackedColumns(("x", "y")), PackedColumns(_MARKS)
        canvas = self.canvas
        self._coloured(canvas.trail(self.source, "x", "y", width=2.4), role="ink")
        self.futures = FutureLines(canvas, ("x", "y"), (2.4,))
        for code in EVENTS:
            kind = KINDS[code]
            self._coloured(canvas.marks(self.marks, "x", "y", kind, 8, of="kind", code=code, alpha="alpha"), kind)
        self.visited = PackedColumns(("x", "y"))
        self._coloured(canvas.marks(self.visited, "x", "y", VISITED, 9, width=1), VISITED)
        self._coloured(canvas.arrow(self.marks, "x", "now", "dx", "dy", size=ARROW, width=2.2), NOW)
        self.known, self.picked = PackedColumns(("x", "y")), PackedColumns(("x", "y"))
        self._coloured(canvas.marks(self.known, "x", "y", KNOWN, 5, width=1), KNOWN)
        self._coloured(canvas.marks(self.picked, "x", "y", PICKED, 8, width=1), PICKED)
        self._coloured(canvas.marks(self.marks, "x", "now", NOW, 19, width=2.6), NOW)
        self._coloured(canvas.marks(self.marks, "x", "now", HERE, 12), HERE)
        self.pointer = Pointer(self.root, events=self.marks)

    def reset(self, scene: dict) -> None:
        """Show the new run's plane, with its contours if it has any."""
        self._reset_plane(scene)
        self._eventful = "events" in scene["emits"]
        self._empty(self.source, self.marks, self.futures.packed, self.known, self.picked, self.visited)

    def theme(self, dark: bool) -> None:
        """Change every colour in place, those of the futures too."""
        self.futures.theme(DARK if dark else LIGHT)
        super().theme(dark)

    def mark(self, selection: dict) -> bool:
        """Mark where the picked draws or event lie."""
        self._picked = selection.get("text", "")
        self.note = self._picked or self._awaits
        changed = [
            self._push(packed, columns(x=selection.get(f"{name}_x", []), y=selection.get(f"{name}_y", [])))
            for packed, name in ((self.known, "known"), (self.picked, "path"))
        ]
        return any(changed)

    def legend_html(self) -> str:
        """Give the legend: the kinds of event, where there are events."""
        return legend(*(mark_html(KINDS[code], self.palette) for code in EVENTS)) if self._eventful else ""

    def _show(self, part: dict) -> bool:
        self._enter_plane(part)
        self._awaits = part["awaits"]
        self.note = self._picked or self._awaits
        self._events = len(part["event_kind"])
        others = part.get("futures", ())
        self._fit(
            now={axis: part[f"now_{axis}"] for axis in ("x", "y")},
            **{
                axis: (part[axis], part[f"event_{axis}"], [part[f"now_{axis}"]], *(other[axis] for other in others))
                for axis in ("x", "y")
            },
        )
        moved = self._push(self.source, columns(x=part["x"], y=part["y"]))
        moved = self._push(self.futures.packed, self.futures.columns(part)) or moved
        visited = columns(x=part.get("visited_x", ()), y=part.get("visited_y", ()))
        moved = self._push(self.visited, visited) or moved
        return self._push(self.marks, _mark_columns(part)) or moved

    def _words(self) -> str:
        return f"the path of one chain with its last {self._events} events"


def _mark_columns(part: dict) -> dict:
    count = len(part["event_kind"])
    nowhere = np.full(count, np.nan)
    return columns(
        x=np.append(part["event_x"], part["now_x"]),
        y=np.append(part["event_y"], np.nan),
        kind=np.append(part["event_kind"], np.nan),
        alpha=np.append(np.linspace(OLDEST_MARK, 1.0, count), 1.0),
        now=np.append(nowhere, part["now_y"]),
        dx=np.append(nowhere, part["now_dx"]),
        dy=np.append(nowhere, part["now_dy"]),
        # A float32 holds whole numbers up to 2^24 only.
        step_high=part["event_step"] // _STEP_PAGE,
        step_low=part["event_step"] % _STEP_PAGE,
    )
