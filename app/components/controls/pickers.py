"""Choose the content of a run's views: a plane, a component to follow, a block of coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import ReaderChoice, Text, WideRow
from bnnviz_app.theme import SHEETS, TIGHT

PCA, COORDINATES, CANONICAL = "PC 1, PC 2", "coordinates", "canonical PCs"
COMPONENTS = {"PC 1": 1, "PC 2": 2, "last PC": -1}
_NOTE = ":host {font-size: 12px; line-height: 1.3; color: var(--mui-palette-text-secondary)}"
# In the heading of a card.
_IN_HEAD = {"size": "small", "height": 26, "visible": False, "stylesheets": [SHEETS["unlabelled"]]}
_SEARCH = {"restrict": True, "min_characters": 0, "size": "small"}
# A text field with a list is designed for a separate line.
_LOW = {"& .MuiInputBase-root": {"padding": "0 28px 0 6px !important"}, "& input": {"padding": "2px 4px !important"}}


class PlanePicker(PageComponent):
    """Choose the plane of the trajectory: two principal components, canonical ones or not, or two coordinates."""

    def __init__(self, on_plane: Callable[[dict[str, Any]], None]) -> None:
        self._on_plane = on_plane
        self._names: list[str] = []
        self.kind = pmui.Select(
            label="Plane", options=[PCA, COORDINATES], width=106, margin=(3, 0, 0, 3), sx=TIGHT, **_IN_HEAD
        )
        wide = _SEARCH | {"margin": (0, 4), "sizing_mode": "stretch_width"}
        self._x, self._y = (pmui.AutocompleteInput(label=label, **wide) for label in ("across", "up"))
        # Empty until it is first shown: most pages are painted without it.
        self.coordinates = WideRow(margin=(4, 10), visible=False)
        self.note = Text(margin=(2, 14, 4, 14), visible=False, stylesheets=[_NOTE])
        self._choice = ReaderChoice((self.kind, self._x, self._y), lambda event: self._ask())
        self.kind.param.watch(lambda event: self._reveal(), "value")

    def reset(self, scene: dict[str, Any]) -> None:
        """Offer the coordinates of a new run; if they are unchanged, request the chosen plane again."""
        names = list(scene["names"])
        kinds = [PCA, CANONICAL, COORDINATES] if scene["canonical"] else [PCA, COORDINATES]
        if names != self._names or kinds != self.kind.options:
            self._names = names
            with self._choice.setting():
                self._x.param.update(options=names, value=names[0])
                self._y.param.update(options=names, value=names[min(1, len(names) - 1)])
                self.kind.param.update(options=kinds, value=PCA)
        self.note.object = scene["canonical"]
        self.kind.visible = len(names) > 2
        self._reveal()
        if self.kind.value != PCA:
            self._ask()

    def _ask(self) -> None:
        """Ask for the chosen plane."""
        if self.kind.value != COORDINATES:
            self._on_plane({"kind": "pca", "canonical": self.kind.value == CANONICAL})
        elif self._x.value in self._names and self._y.value in self._names:
            i, j = self._names.index(self._x.value), self._names.index(self._y.value)
            self._on_plane({"kind": "coordinates", "i": i, "j": j})

    def _reveal(self) -> None:
        chosen = self.kind.visible and self.kind.value == COORDINATES
        if chosen and not self.coordinates:
            self.coordinates.extend([self._x, self._y])
        self.coordinates.visible = chosen
        self.note.visible = self.kind.visible and self.kind.value == CANONICAL


class ComponentPicker(PageComponent):
    """Choose the quantity of trace, ACF and density: a principal component, a coordinate, or a statistic."""

    def __init__(self, on_component: Callable[[dict[str, Any]], None]) -> None:
        self._on_component = on_component
        self._names: list[str] = []
        self._stats: list[str] = []
        look = {"width": 150, "margin": (3, 10, 0, 3), "sx": _LOW}
        self.root = pmui.AutocompleteInput(label="Follow", **_IN_HEAD | _SEARCH | look)
        self._choice = ReaderChoice((self.root,), lambda event: self._ask())

    def reset(self, scene: dict[str, Any]) -> None:
        """Offer the components of a new run; if its coordinates are unchanged, request the chosen one again."""
        names, stats = list(scene["names"]), list(scene.get("sample_stats", []))
        same = names == self._names
        if not same or stats != self._stats:
            self._names, self._stats = names, stats
            # In two dimensions there are no axes to fit.
            components = list(COMPONENTS) if len(names) > 2 else []
            options = [*components, *(f"{i}: {name}" for i, name in enumerate(names)), *stats]
            kept = same and self.root.value in options
            with self._choice.setting():
                self.root.param.update(options=options, value=self.root.value if kept else options[0])
        self.root.visible = len(self.root.options) > 1
        if self.root.value != self.root.options[0]:
            self._ask()

    def choose(self, number: int) -> None:
        """Follow a coordinate by its number; very long lists name only the first ones."""
        if number < len(self._names):
            with self._choice.setting():
                self.root.value = f"{number}: {self._names[number]}"
        self._on_component({"kind": "coordinate", "i": number})

    def _ask(self) -> None:
        """Request the chosen component; ignore incomplete input."""
        if self.root.value in COMPONENTS:
            self._on_component({"kind": "pc", "number": COMPONENTS[self.root.value]})
        elif self.root.value in self._stats:
            self._on_component({"kind": "stat", "name": self.root.value})
        elif self.root.value in self.root.options:
            self._on_component({"kind": "coordinate", "i": int(self.root.value.partition(":")[0])})


class BlockPicker(PageComponent):
    """Choose the block of coordinates whose correlations are shown."""

    def __init__(self, on_block: Callable[[int], None]) -> None:
        self._on_block = on_block
        self.root = pmui.Select(label="Block", options=[], width=112, margin=(3, 10, 0, 3), sx=TIGHT, **_IN_HEAD)
        self._choice = ReaderChoice((self.root,), lambda event: self._ask())

    def reset(self, scene: dict[str, Any]) -> None:
        """Offer the blocks of a new run; if they are unchanged, request the chosen one again."""
        labels = [block["label"] for block in scene["blocks"]]
        if labels != self.root.options:
            with self._choice.setting():
                self.root.param.update(options=labels, value=labels[0])
        self.root.visible = len(labels) > 1
        if self.root.value != labels[0]:
            self._ask()

    def _ask(self) -> None:
        self._on_block(self.root.options.index(self.root.value))
