"""Show one sampler of a race in the figure of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Arrows, Drawing, Line, Mark, Points

#: Scale of marks and path widths relative to the figure of one run: large marks would hide the density in small cards.
SMALLER = 0.6


def of_entry(figure: type[Figure], number: int, heading: str) -> Figure:
    """Return the figure of a run for one sampler, whose parts have its number in the frames of the race."""

    class OfEntry(figure):
        """Draw one sampler in the figure of a run."""

        name = f"{figure.name}.{number}"
        title = heading
        needs = tuple(f"{part}.{number}" for part in figure.needs)
        alike = False  # a small card has no room beside a narrow density

        def begin(self, scene: dict[str, Any]) -> None:
            """Begin with the scene of the sampler."""
            super().begin(scene["entries"][number])

        def blank(self) -> Drawing:
            """Return the drawing before the first frame."""
            return _smaller(super().blank(), heading)

        def draw(self, part: dict[str, Any]) -> Drawing:
            """Draw the sampler with smaller marks."""
            return _smaller(super().draw(part), heading)

    return OfEntry()


def _smaller(drawing: Drawing, title: str) -> Drawing:
    return replace(drawing, title=title, marks=[_shrunk(mark) for mark in drawing.marks])


def _shrunk(mark: Mark) -> Mark:
    if isinstance(mark, Points | Arrows):
        return replace(mark, size=SMALLER * mark.size)
    if isinstance(mark, Line) and mark.fading:
        return replace(mark, width=SMALLER * mark.width)
    return mark
