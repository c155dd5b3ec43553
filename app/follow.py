"""What trace and autocorrelation follow: a principal component, or one coordinate by its name or number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

from theme import TIGHT, UNLABELLED

COMPONENTS = {"PC 1": 1, "PC 2": 2, "last PC": -1}
ONE = "coordinate"
_SMALL = {"size": "small", "height": 26, "visible": False, "stylesheets": [UNLABELLED]}
# A text field with a list is made for a line of its own.
_LOW = {"& .MuiInputBase-root": {"padding": "0 28px 0 6px !important"}, "& input": {"padding": "2px 4px !important"}}


class FollowPicker:
    """A select for the component, and a field that finds a coordinate.

    Parameters
    ----------
    on_component : callable
        Called with a component, as the `watch` command takes it.
    """

    def __init__(self, on_component: Callable[[dict[str, Any]], None]) -> None:
        self._on_component = on_component
        self._silent = False
        self._names: list[str] = []
        self.kind = pmui.Select(
            label="Follow", options=[*COMPONENTS, ONE], width=116, margin=(3, 10, 0, 3), sx=TIGHT, **_SMALL
        )
        self.one = pmui.AutocompleteInput(
            label="Coordinate", restrict=True, min_characters=0, width=150, margin=(3, 10, 0, 0), sx=_LOW, **_SMALL
        )
        for widget in (self.kind, self.one):
            widget.param.watch(self._chosen, "value")

    def show(self, scene: dict[str, Any]) -> None:
        """Offer the coordinates of a new run; it is asked for what was chosen if they are those of the run before."""
        names = list(scene["names"])
        if names != self._names:
            self._silent = True
            self._names = names
            options = [f"{i}: {name}" for i, name in enumerate(names)]
            self.one.param.update(options=options, value=options[0])
            # In two dimensions there are no axes to fit.
            kinds = [*COMPONENTS, ONE] if len(names) > 2 else [ONE]
            self.kind.param.update(options=kinds, value=kinds[0])
            self._silent = False
        self.kind.visible = len(names) > 2
        self.one.visible = len(names) > 1 and self.kind.value == ONE
        if self.kind.value != next(iter(COMPONENTS)):
            self._ask()

    def _chosen(self, event: Any) -> None:
        self.one.visible = self.kind.value == ONE
        if not self._silent:
            self._ask()

    def _ask(self) -> None:
        """Ask for what is chosen."""
        if self.kind.value != ONE:
            self._on_component({"kind": "pc", "number": COMPONENTS[self.kind.value]})
        elif self.one.value in self.one.options:
            self._on_component({"kind": "coordinate", "i": self.one.options.index(self.one.value)})
