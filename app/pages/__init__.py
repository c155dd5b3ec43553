"""List the pages of the dashboard: each has a name in the address, a title, and a function that builds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class PageEntry:
    """Name a page that can be opened.

    Parameters
    ----------
    name : str
        Its value of ``?page=``.
    title : str
        Its name in the header.
    module : str
        The module with its ``build`` function, imported when the page is opened.
    keeps : bool
        Whether it shows or makes what is kept, which students of a class do not.
    """

    name: str
    title: str
    module: str
    keeps: bool = False

    @property
    def build(self) -> Callable[[], Any]:
        """The function that builds the page for the current session."""
        return import_module(self.module).build


_ENTRIES = (
    PageEntry("lab", "Lab", "bnnviz_app.pages.lab"),
    PageEntry("learn", "Learn", "bnnviz_app.pages.learn"),
    PageEntry("race", "Race", "bnnviz_app.pages.race"),
    PageEntry("population", "Population", "bnnviz_app.pages.population"),
    PageEntry("uncertainty", "Uncertainty", "bnnviz_app.pages.uncertainty"),
    PageEntry("wells", "Wells", "bnnviz_app.pages.double_well"),
    PageEntry("microscope", "Step size", "bnnviz_app.pages.step_size"),
    PageEntry("papers", "Papers", "bnnviz_app.pages.papers", keeps=True),
    PageEntry("recordings", "Recordings", "bnnviz_app.pages.recordings", keeps=True),
)
PAGES: dict[str, PageEntry] = {entry.name: entry for entry in _ENTRIES}
#: Pages of a class only.
OF_CLASS: dict[str, PageEntry] = {"follow": PageEntry("follow", "Follow", "bnnviz_app.pages.follow")}
FIRST = next(iter(PAGES))
