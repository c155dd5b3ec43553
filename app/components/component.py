"""Define the interface of a page's components, which receive frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bnnviz_app.components.widgets import set_class


class PageComponent:
    """A part of a page.

    The page calls `reset` with the scene of each new run, `update` with each frame that contains the component's
    `needs`, and `theme` and `magnify` on request of the user.
    """

    needs: frozenset[str] = frozenset()
    enlarged: Sequence[Any] = ()  # panes whose style sheets have the class "large" for a projector

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        for pane in self.enlarged:
            set_class(pane, "large", large)
