"""In which plane the trajectory is looked at: two coordinates or two principal components, canonical ones or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz_app.theme import TIGHT, UNLABELLED

PCA, COORDINATES, CANONICAL = "PC 1, PC 2", "coordinates", "canonical PCs"
_SMALL = {"size": "small", "margin": (3, 3, 0, 3), "height": 26}
_CAUTION = ":host {font-size: 12px; line-height: 1.3; color: var(--mui-palette-text-secondary)}"
_WIDE = {"size": "small", "margin": (0, 4), "sizing_mode": "stretch_width"}


class PlanePicker:
    """A select for the kind of plane, a row of two for its coordinates, and a caution where draws are folded.

    Parameters
    ----------
    on_plane : callable
        Called with a plane, as the `watch` command takes it.
    """

    def __init__(self, on_plane: Callable[[dict[str, Any]], None]) -> None:
        self._on_plane = on_plane
        self._silent = False
        self._names: list[str] = []
        self.kind = pmui.Select(
            label="Plane",
            options=[PCA, COORDINATES],
            width=136,
            visible=False,
            sx=TIGHT,
            stylesheets=[UNLABELLED],
            **_SMALL,
        )
        self._x = pmui.AutocompleteInput(label="across", restrict=True, min_characters=0, **_WIDE)
        self._y = pmui.AutocompleteInput(label="up", restrict=True, min_characters=0, **_WIDE)
        # Empty until it is first shown: most pages are painted without it.
        self.coordinates = pn.Row(sizing_mode="stretch_width", margin=(4, 10), visible=False)
        self.caution = pn.pane.HTML(
            "", sizing_mode="stretch_width", margin=(2, 14, 4, 14), visible=False, stylesheets=[_CAUTION]
        )
        for widget in (self.kind, self._x, self._y):
            widget.param.watch(self._chosen, "value")

    def show(self, scene: dict[str, Any]) -> None:
        """Offer the coordinates of a new run; with two or fewer there is nothing to choose.

        Where the coordinates are those of the run before, the new run is asked for the plane that was chosen.
        """
        names = list(scene["names"])
        kinds = [PCA, CANONICAL, COORDINATES] if scene["canonical"] else [PCA, COORDINATES]
        if names != self._names or kinds != self.kind.options:
            self._silent = True
            self._names = names
            self._x.param.update(options=names, value=names[0])
            self._y.param.update(options=names, value=names[min(1, len(names) - 1)])
            self.kind.param.update(options=kinds, value=PCA)
            self._silent = False
        self.caution.object = scene["canonical"]
        self.kind.visible = len(names) > 2
        self._reveal()
        if self.kind.value != PCA:
            self._ask()

    def _chosen(self, event: Any) -> None:
        self._reveal()
        if not self._silent:
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
        self.caution.visible = self.kind.visible and self.kind.value == CANONICAL
