"""List the figures, and show one sampler of a race in the figure of a run."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

from bnnviz.figures import MODULES
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Arrows, Drawing, Line, Points

#: Scale of marks and path widths relative to the figure of one run: large marks would hide the density in small cards.
SMALLER = 0.6
_FIGURES = [
    found
    for module in MODULES
    for found in vars(importlib.import_module(module)).values()
    if isinstance(found, type) and issubclass(found, Figure) and found.__module__ == module and "name" in vars(found)
]
#: The figures by their names, those of runs first.
BY_NAME: dict[str, type[Figure]] = {figure.name: figure for figure in sorted(_FIGURES, key=lambda each: each.place)}


def of_runs() -> list[Figure]:
    """Return the figures that a run may have, in their order on the stage."""
    return [figure() for figure in BY_NAME.values() if figure.place < Figure.place]


def of_entry(figure: type[Figure], number: int, heading: str) -> Figure:
    """Return the figure of a run for one sampler, whose parts have its number in the frames of the race."""

    class OfEntry(figure):
        """Draw one sampler in the figure of a run, with smaller marks."""

        name = f"{figure.name}.{number}"
        title = heading
        needs = tuple(f"{part}.{number}" for part in figure.needs)
        alike = False  # a small card has no room beside a narrow density

        def begin(self, scene: dict[str, Any]) -> None:
            """Begin with the scene of the sampler."""
            super().begin(scene["entries"][number])

        def blank(self) -> Drawing:
            """Return the drawing before the first frame."""
            return self._smaller(super().blank())

        def draw(self, part: dict[str, Any]) -> Drawing:
            """Draw the sampler."""
            return self._smaller(super().draw(part))

        def _smaller(self, drawing: Drawing) -> Drawing:
            marks = list(drawing.marks)
            for place, mark in enumerate(marks):
                if isinstance(mark, Points | Arrows):
                    marks[place] = replace(mark, size=SMALLER * mark.size)
                elif isinstance(mark, Line) and mark.fading:
                    marks[place] = replace(mark, width=SMALLER * mark.width)
            return replace(drawing, title=heading, marks=marks)

    return OfEntry()


def figures_for(scene: dict[str, Any]) -> list[Figure]:
    """Return the figures that a run or a race can feed: those whose parts it emits."""
    emitted = set(scene["emits"])
    entries = [
        of_entry(type(figure), number, entry["name"])
        for figure in of_runs()
        if figure.needs[0] in scene.get("pictures", ())
        for number, entry in enumerate(scene["entries"])
    ]
    runs = [figure for figure in (*of_runs(), *entries) if emitted.issuperset(figure.needs)]
    others = [figure for figure in BY_NAME.values() if figure.place == Figure.place and figure.name != "journey"]
    return [*runs, *(figure() for figure in others if emitted.issuperset(figure.needs))]
