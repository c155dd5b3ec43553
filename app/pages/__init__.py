"""The pages of the dashboard: each is a name in the address, a title, and a function that builds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A page that can be opened.

    Parameters
    ----------
    name : str
        Its value of ``?page=``.
    title : str
        Its name in the header.
    module : str
        The module with its ``build`` function, imported when the page is opened.
    """

    name: str
    title: str
    module: str

    @property
    def build(self) -> Callable[[], Any]:
        """The function that builds the page for the current session."""
        return import_module(self.module).build


_ENTRIES = (
    Entry("lab", "Lab", "bnnviz_app.pages.lab"),
    Entry("race", "Race", "bnnviz_app.pages.race"),
    Entry("population", "Population", "bnnviz_app.pages.population"),
    Entry("uncertainty", "Uncertainty", "bnnviz_app.pages.uncertainty"),
    Entry("wells", "Wells", "bnnviz_app.pages.double_well"),
    Entry("microscope", "Step size", "bnnviz_app.pages.step_size"),
    Entry("papers", "Papers", "bnnviz_app.pages.papers"),
    Entry("recordings", "Recordings", "bnnviz_app.pages.recordings"),
)
PAGES: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
FIRST = next(iter(PAGES))
