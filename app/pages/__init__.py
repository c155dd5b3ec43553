"""List the pages of the dashboard: each has a name in the address and a module whose `build` makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class PageEntry:
    """A page of the dashboard."""

    name: str
    purpose: str
    keeps: bool = False

    @property
    def title(self) -> str:
        """The name in the header and in the menu."""
        return self.name.capitalize()

    @property
    def module(self) -> str:
        """The module of the page."""
        return f"{__name__}.{self.name}"

    @property
    def build(self) -> Callable[[bool], Any]:
        """The function that builds the page for the current session."""
        return import_module(self.module).build


_ENTRIES = (
    PageEntry("lab", "Watch one sampler on one target, step by step or at full speed."),
    PageEntry("race", "Let two to six samplers spend the same budget of gradients, and compare their errors."),
    PageEntry("population", "Watch the proposals of an importance sampler move to where the weight is."),
    PageEntry(
        "uncertainty", "See which images samplers are uncertain about, and whether the uncertainty is calibrated."
    ),
    PageEntry("wells", "Compare samplers of functionals and of points on a density with two wells."),
    PageEntry("papers", "Compare the papers' tables and figures with our measurements.", keeps=True),
    PageEntry("recordings", "Find, look at and resume recorded runs.", keeps=True),
)
PAGES: dict[str, PageEntry] = {entry.name: entry for entry in _ENTRIES}
#: Pages of a class only.
OF_CLASS: dict[str, PageEntry] = {
    "ask": PageEntry("ask", "Ask the class a question, and count its answers without names.", keeps=True),
}
FIRST = next(iter(PAGES))
