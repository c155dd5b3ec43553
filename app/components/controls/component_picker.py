"""What trace, autocorrelation and density follow: a principal component, or one coordinate by its name or number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

from bnnviz_app.theme import UNLABELLED

COMPONENTS = {"PC 1": 1, "PC 2": 2, "last PC": -1}
# A text field with a list is made for a line of its own.
_LOW = {"& .MuiInputBase-root": {"padding": "0 28px 0 6px !important"}, "& input": {"padding": "2px 4px !important"}}


class FollowPicker:
    """A field that lists the components and finds a coordinate.

    Parameters
    ----------
    on_component : callable
        Called with a component, as the `watch` command takes it.
    """

    def __init__(self, on_component: Callable[[dict[str, Any]], None]) -> None:
        self._on_component = on_component
        self._silent = False
        self._names: list[str] = []
        self.root = pmui.AutocompleteInput(
            label="Follow",
            restrict=True,
            min_characters=0,
            size="small",
            width=150,
            height=26,
            margin=(3, 10, 0, 3),
            visible=False,
            sx=_LOW,
            stylesheets=[UNLABELLED],
        )
        self.root.param.watch(self._chosen, "value")

    def show(self, scene: dict[str, Any]) -> None:
        """Offer what a new run has; it is asked for what was chosen if the coordinates are those of the run before."""
        names = list(scene["names"])
        if names != self._names:
            self._names = names
            # In two dimensions there are no axes to fit.
            components = list(COMPONENTS) if len(names) > 2 else []
            options = [*components, *(f"{i}: {name}" for i, name in enumerate(names))]
            self._silently(options=options, value=options[0])
        self.root.visible = len(names) > 1
        if self.root.value != self.root.options[0]:
            self._ask()

    def choose(self, number: int) -> None:
        """Follow a coordinate by its number; of a very long list the last ones have no name here."""
        if number < len(self._names):
            self._silently(value=f"{number}: {self._names[number]}")
        self._on_component({"kind": "coordinate", "i": number})

    def _silently(self, **shown: Any) -> None:
        self._silent = True
        self.root.param.update(**shown)
        self._silent = False

    def _chosen(self, event: Any) -> None:
        if not self._silent:
            self._ask()

    def _ask(self) -> None:
        """Ask for what is chosen; what has been typed so far may be nothing yet."""
        if self.root.value in COMPONENTS:
            self._on_component({"kind": "pc", "number": COMPONENTS[self.root.value]})
        elif self.root.value in self.root.options:
            self._on_component({"kind": "coordinate", "i": int(self.root.value.partition(":")[0])})
