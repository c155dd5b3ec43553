"""Draw data: add, move and delete points in a figure, and take it back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from bnnviz.figures.live.view import View
from bnnviz.settings import MOST_POINTS
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import set_changed

PointList = list[list[float]]

_UNDO, _CLEAR = "Undo", "Clear: no points, the prior alone"
_OWN = "the data's own"
_HISTORY = 100
_DIGITS = 4  # digits in a link
_PRESETS = json.loads((Path(__file__).parents[2] / "presets" / "points.json").read_text(encoding="utf-8"))
_HEAD = {"size": "small", "margin": (2, 3), "height": 26}
_WORDS = {"padding": "1px 8px !important", "fontSize": "12.5px", "whiteSpace": "nowrap", "textTransform": "none"}
_CLASSES = {"add 0": 0, "add 1": 1}


class PointEditor(PageComponent):
    """Keep the points that a person draws in a view."""

    def __init__(
        self,
        view: View,
        on_points: Callable[[PointList], None],
        on_own: Callable[[], None],
        on_notice: Callable[[str], None],
    ) -> None:
        self._view, self._on_points, self._on_own, self._on_notice = view, on_points, on_own, on_notice
        self.rows: PointList = []
        self._past: list[PointList] = []
        self._moving = False
        self._classes = False
        self._ranges = ((-1.0, 1.0), (-1.0, 1.0))
        self._class = pmui.RadioButtonGroup(
            options=_CLASSES, value=0, width=94, sx={"& .MuiToggleButton-root": _WORDS}, **_HEAD
        )
        self.presets = pmui.MenuButton(label="Points", items=[], variant="outlined", size="small", visible=False)
        self.presets.on_click(self._picked)
        # Empty until one of them is needed: the page is painted sooner.
        self.tools = pn.Row()

    def reset(self, scene: dict[str, Any]) -> None:
        """Take the points of a new run."""
        data = scene["data"] or {}
        editable = bool(data.get("editable"))
        self.presets.visible = editable
        self._past, self._moving = [], False
        self._classes = "class" in data
        if not editable:
            self.rows, self.tools.visible = [], False
            return
        names = ("x", "y", "class") if self._classes else ("x", "y")
        self.rows = np.column_stack([data[name] for name in names]).round(12).tolist()
        self._ranges = (data["x_range"], data["y_range"])
        if self._classes and self._class not in self.tools:
            self.tools.append(self._class)
        self._class.visible, self.tools.visible = self._classes, True
        presets = _PRESETS["classes" if self._classes else "curve"]
        set_changed(self.presets, items=[{"label": name} for name in (_UNDO, _CLEAR, _OWN, *presets)])

    def receive(self, message: dict[str, Any]) -> None:
        """Apply an action in the figure."""
        deeds = {"add": self._add, "move": self._move, "delete": self._delete}
        if message["do"] in deeds:
            deeds[message["do"]](message)
        elif message["do"] == "undo":
            self.undo()
        elif message["do"] == "class" and self._classes:
            self._class.value = 1 - self._class.value

    def undo(self) -> None:
        """Take back the last change."""
        if self._past:
            self.rows = self._past.pop()
            self._tell()

    def _add(self, message: dict[str, Any]) -> None:
        if len(self.rows) >= MOST_POINTS:
            self._on_notice(f"There are {len(self.rows)} points; more than {MOST_POINTS} cannot be drawn. Delete some.")
            return
        extra = [self._class.value] if self._classes else []
        self._become([*self.rows, [*self._place(message), *extra]])

    def _move(self, message: dict[str, Any]) -> None:
        i = int(message["i"])
        if not 0 <= i < len(self.rows):
            return
        if not self._moving:
            self._remember()
        self._moving = not message["done"]
        moved = [*self._place(message), *self.rows[i][2:]]
        self.rows = [*self.rows[:i], moved, *self.rows[i + 1 :]]
        self._tell()

    def _delete(self, message: dict[str, Any]) -> None:
        i = int(message["i"])
        if 0 <= i < len(self.rows):
            self._become([*self.rows[:i], *self.rows[i + 1 :]])

    def _place(self, message: dict[str, Any]) -> list[float]:
        return [float(f"{float(message[axis]):.{_DIGITS}g}") for axis in ("x", "y")]

    def _become(self, rows: PointList) -> None:
        self._remember()
        self.rows = rows
        self._tell()

    def _remember(self) -> None:
        self._past = [*self._past[1 - _HISTORY :], self.rows]

    def _tell(self) -> None:
        if len(self.rows) > MOST_POINTS:
            stride = -(-len(self.rows) // MOST_POINTS)
            self._on_notice(
                f"Of these {len(self.rows)} points every {stride}th was kept: no more than {MOST_POINTS} can be drawn."
            )
            self.rows = self.rows[::stride]
        self._view.figure.rows = self.rows
        self._view.redraw()
        self._on_points(self.rows)

    def _picked(self, item: dict[str, str]) -> None:
        name = item["label"]
        if name == _UNDO:
            self.undo()
        elif name == _CLEAR:
            self._become([])
        elif name == _OWN:
            self._on_own()
        else:
            preset = _PRESETS["classes" if self._classes else "curve"][name]
            self._become([self._spread(point) for point in preset])

    def _spread(self, point: list[float]) -> list[float]:
        """Scale a preset's point from [-1, 1] to the middle of the figure."""
        at = [sum(r) / 2 + share * 0.3 * (r[1] - r[0]) for r, share in zip(self._ranges, point[:2], strict=True)]
        return [*(float(f"{value:.{_DIGITS}g}") for value in at), *point[2:]]
