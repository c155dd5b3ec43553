"""Say what a page may ask of its components, which it feeds with frames."""

from __future__ import annotations

from typing import Any


class PageComponent:
    """Be a part of a page.

    The page calls `reset` with the scene of each new run, `update` with each frame that has what the component needs,
    and `theme` and `magnify` when its reader asks for them. A component overrides what concerns it.
    """

    needs: frozenset[str] = frozenset()

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
