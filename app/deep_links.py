"""Find the page that shows a spec, and the address that opens the page on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bnnviz.errors import BnnvizError
from bnnviz.experiments import Experiment
from bnnviz.specs import catalogue, url
from bnnviz.specs.race import MOST, ImageRaceSpec, RaceSpec
from bnnviz.specs.run import Spec
from bnnviz.specs.wells import WellsSpec
from bnnviz_app.pages import PAGES

_POPULATION = "population"  # the part that samplers with a population emit
_PAGES = {ImageRaceSpec: "uncertainty", RaceSpec: "race", WellsSpec: "wells"}


@dataclass(frozen=True)
class DeepLink:
    """A page and its opening spec."""

    page: str
    spec: Any

    @property
    def title(self) -> str:
        """The page's name in the header."""
        return PAGES[self.page].title

    def query(self, flags: Mapping[str, str] | None = None) -> str:
        """Return the query of the address."""
        return url.query_text({"page": self.page, **self.spec.to_query(), **(flags or {})})


def of_images(data: str | None) -> bool:
    """Return whether a data set holds images."""
    entry = next((entry for entry in catalogue.load()["data"] if entry["name"] == data), None)
    return entry is not None and entry["shape"] is not None


def deep_link(spec: Any) -> DeepLink | None:
    """Return a link to a spec, or None if no link can hold all of it."""
    found = _linked(spec)
    return found if found is not None and _arrives(found) else None


def _linked(spec: Any) -> DeepLink | None:
    """Return the page that is made for a spec."""
    if type(spec) in _PAGES:
        return DeepLink(_PAGES[type(spec)], spec)
    if not isinstance(spec, Spec) or of_images(spec.target_settings.get("data")):
        return None  # a page of images has several samplers
    try:
        emits = catalogue.find("samplers", spec.sampler)["emits"]
    except BnnvizError:  # of another version, or made up
        return None
    return DeepLink(_POPULATION if _POPULATION in emits else "lab", spec)


def _arrives(found: DeepLink) -> bool:
    """Return whether reading the link gives the same spec."""
    try:
        spec = found.spec.checked()
    except BnnvizError:
        return False
    if spec.shareable():
        return False
    opened, sentences = spec.read_query(spec.to_query())
    return not sentences and opened == spec


def together(experiment: Experiment) -> DeepLink | None:
    """Return a link that shows the cases of an experiment on images side by side, or None."""
    firsts = [case.specs[0] for case in experiment.cases if case.specs]
    if not firsts or not all(isinstance(s, Spec) and of_images(s.target_settings.get("data")) for s in firsts):
        return None
    # Those that have all in common with the first one but the sampler.
    first = firsts[0]
    same = [s for s in firsts if (s.target, s.target_settings) == (first.target, first.target_settings)]
    entries = tuple(s.replace(draws=None, chains=first.chains, seed=first.seed) for s in same[:MOST])
    try:
        return deep_link(ImageRaceSpec(entries).checked())
    except BnnvizError:
        return None
