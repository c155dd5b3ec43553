"""List the figures."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from bnnviz.figures import MODULES
from bnnviz.figures.base import Figure
from bnnviz.figures.entries import of_entry


def _figures() -> Iterable[type[Figure]]:
    for module in MODULES.values():
        for found in vars(importlib.import_module(module)).values():
            if isinstance(found, type) and issubclass(found, Figure) and found.__module__ == module:
                yield found


#: The figures by their names, those of runs first.
BY_NAME: dict[str, type[Figure]] = {figure.name: figure for figure in sorted(_figures(), key=lambda each: each.place)}


def of_runs() -> list[Figure]:
    """Return the figures that a run may have, in their order on the stage."""
    return [figure() for figure in BY_NAME.values() if figure.place < Figure.place]


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
