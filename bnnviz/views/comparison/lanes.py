"""Show one lane of a race in the views of a run, fed with that lane's parts."""

from __future__ import annotations

from bnnviz.views.base import View

#: Of the size of marks, and of the width of a path, in the figure of one run: lanes' cards are small, and both hide the
#: density.
SMALLER = 0.6


def of_lane(view: type[View], number: int, title: str) -> type[View]:
    """Return a view of a run as that of a lane, whose parts have its number in the frames of the race."""
    lane_name, heading = f"{view.name}.{number}", title

    class OfLane(view):
        """Draw one lane in the figure of a run."""

        name = lane_name
        needs = tuple(f"{part}.{number}" for part in view.needs)

        def _build(self) -> None:
            super()._build()
            for glyph in self.canvas.glyphs:
                glyph.size *= SMALLER
                glyph.width *= SMALLER if glyph.kind == "trail" else 1

        def reset(self, scene: dict) -> None:
            """Begin a new race."""
            super().reset(scene["lanes"][number])

        @property
        def title(self) -> str:
            """The heading."""
            return heading

        @title.setter
        def title(self, text: str) -> None:
            """Keep the lane's name, whatever the view would be called."""

    OfLane.__name__ = OfLane.__qualname__ = f"{view.__name__}Of{number}"
    return OfLane
