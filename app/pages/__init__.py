"""List the pages of the dashboard: each has a name in the address, a title, and a function that builds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class PageEntry:
    """A page of the dashboard."""

    name: str
    title: str
    module: str
    purpose: str
    keeps: bool = False

    @property
    def build(self) -> Callable[[], Any]:
        """The function that builds the page for the current session."""
        return import_module(self.module).build


_ENTRIES = (
    PageEntry("lab", "Lab", "bnnviz_app.pages.lab", "Watch one sampler on one target, step by step or at full speed."),
    PageEntry(
        "race",
        "Race",
        "bnnviz_app.pages.race",
        "Let two to six samplers spend the same budget of gradients, and compare their errors.",
    ),
    PageEntry(
        "population",
        "Population",
        "bnnviz_app.pages.population",
        "Watch the proposals of an importance sampler move to where the weight is.",
    ),
    PageEntry(
        "uncertainty",
        "Uncertainty",
        "bnnviz_app.pages.uncertainty",
        "See which images samplers are uncertain about, and whether the uncertainty is calibrated.",
    ),
    PageEntry(
        "wells",
        "Wells",
        "bnnviz_app.pages.double_well",
        "Compare samplers of functionals and of points on a density with two wells.",
    ),
    PageEntry(
        "papers",
        "Papers",
        "bnnviz_app.pages.papers",
        "Compare the papers' tables and figures with our measurements.",
        keeps=True,
    ),
    PageEntry(
        "recordings",
        "Recordings",
        "bnnviz_app.pages.recordings",
        "Find, compare and resume recorded runs.",
        keeps=True,
    ),
)
PAGES: dict[str, PageEntry] = {entry.name: entry for entry in _ENTRIES}
#: Pages of a class only.
OF_CLASS: dict[str, PageEntry] = {
    "ask": PageEntry(
        "ask",
        "Ask",
        "bnnviz_app.pages.ask",
        "Ask the class a question, and count its answers without names.",
        keeps=True,
    ),
}
FIRST = next(iter(PAGES))
