"""Run a race on images: samplers share one budget and are queried for their uncertainty."""

from __future__ import annotations

import time
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import data as datasets
from bnnviz import diagnostics
from bnnviz.data import ImageSet
from bnnviz.engine.race.entry import Entry
from bnnviz.engine.race.image_queries import ImageQueries
from bnnviz.engine.race.image_view import ImageRaceView
from bnnviz.engine.race.predictive_cache import PredictiveCache
from bnnviz.engine.race.race import Race
from bnnviz.engine.race.view import RaceView
from bnnviz.errors import BnnvizError
from bnnviz.specs.race import ImageRaceSpec, RaceSpec

OOD_ROWS = 250  # out-of-distribution rows
#: Data sets of images.
WALLS = ("hardest", "attacked")
_SHARE = 0.3  # queries may take this fraction of the sampling time
_LOOK_S = 0.03  # at once
_AT_ONCE_S = 2.0  # maximum seconds of a blocking query of all samplers


class CoursePoint(NamedTuple):
    """Predictive performance of a sampler after the given seconds of work."""

    seconds: float
    gradients: int
    draws: int
    accuracy: float
    nll: float
    ece: float


class ImageEntry(Entry):
    """Run a sampler whose draws answer image queries."""

    predictive_cache: PredictiveCache
    ood: PredictiveCache | None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.course: list[CoursePoint] = []
        self._scored: tuple[int, dict[str, float]] = (0, {})

    def _note(self, before: int) -> None:
        """Record nothing: there is no truth to compare estimates with."""

    def scores(self) -> dict[str, float]:
        """Return accuracy, nll and ece of the mean over the evaluated draws."""
        version = self.predictive_cache.version
        if self.predictive_cache.asked and self._scored[0] != version:
            y = self.target.data_set.y_test
            mean = self.predictive_cache.probabilities.mean(0, dtype=float)
            mean /= mean.sum(1, keepdims=True)
            found = {
                "accuracy": float((mean.argmax(1) == y).mean()),
                "nll": float(-np.log(np.maximum(mean[np.arange(len(y)), y], np.finfo(np.float32).tiny)).mean()),
                "ece": diagnostics.calibration_error(mean, y, diagnostics.PAPER_BINS),  # as in the diagram
            }
            self._scored = version, found
        return self._scored[1]

    def asked(self) -> list[PredictiveCache]:
        """Return the caches of its draws."""
        return [self.predictive_cache] if self.ood is None else [self.predictive_cache, self.ood]


class ImageRace(Race):
    """Run a race on images, driven like a `Race`; it continues after the budgets until all queries are answered."""

    spec_class: ClassVar[type[RaceSpec]] = ImageRaceSpec
    entry_class: ClassVar[type[Entry]] = ImageEntry
    view_class: ClassVar[type[RaceView]] = ImageRaceView

    def __init__(self, spec: ImageRaceSpec) -> None:
        super().__init__(spec, measured=False)  # a reference run is too slow for this many weights
        data = getattr(self.entries[0].target, "data_set", None)
        if not isinstance(data, ImageSet):
            raise BnnvizError("This race requires a target with images.", "target")
        self._looked = 0.0
        self.wall = WALLS[0]
        self.images, self.ood = data, _first_ood(data)
        for entry in self.entries:
            entry.predictive_cache = PredictiveCache(entry, _rows(data, entry))
        self._choose_ood()
        self.queries = ImageQueries(self)

    def _choose_ood(self) -> None:
        """Start querying all samplers on the out-of-distribution rows."""
        found = None if self.ood is None else self.ood.scaled_like(self.images)
        for entry in self.entries:
            entry.ood = None if found is None else PredictiveCache(entry, _rows(found, entry))

    # driving

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about the given seconds; return the number of steps, and of queries once samplers have ended."""
        begun = time.perf_counter()
        looks = self._look() if self.phase != "start" and self._looked <= _SHARE * self._raced else 0
        left = seconds - (time.perf_counter() - begun)
        if self.phase != "start" and all(entry.over for entry in self.entries):
            return looks or self._look()
        return super().advance(left) if left > 0 else looks

    def step_proposal(self) -> None:
        """Take one step with each sampler that is behind and query its draws."""
        super().step_proposal()
        self._look()

    def _look(self) -> int:
        """Query pending draws of the sampler with most of them; return whether there were any."""
        begun = time.perf_counter()
        asked = [(entry, cache) for entry in self.entries for cache in entry.asked()]
        waiting = [len(cache.missing()) for _, cache in asked]
        found = any(waiting)
        if found:
            entry, cache = asked[int(np.argmax(waiting))]
            cache.look(_LOOK_S)
            if cache is entry.predictive_cache and not cache.missing() and (scores := entry.scores()):
                entry.course.append(CoursePoint(entry.seconds, entry.gradients, cache.asked, **scores))
        else:
            found = self.queries.look()
        self._looked += time.perf_counter() - begun
        self._next_phase()
        return int(found)

    def _next_phase(self) -> None:
        if not all(entry.over for entry in self.entries):
            return
        asking = self.queries.busy or any(cache.missing() for entry in self.entries for cache in entry.asked())
        if self.error is not None or not asking:
            self.phase = "done"

    # views

    def watch(
        self,
        ood: str | None = None,
        image: dict[str, Any] | None = None,
        wall: str | None = None,
        **what: Any,
    ) -> None:
        """Choose the views as in `ViewedRun.watch`, and the image to query; None changes nothing.

        ``image`` has ``index`` of a test image, ``pixels`` from 0 to 255, (height, width) or (channels, height, width),
        or ``attacked``, the index of an adversarial image; and ``angle``, its rotation in degrees counter-clockwise.
        """
        if ood is not None:
            self.ood = _chosen(ood, self.images)
            self._choose_ood()
            if self.finished:
                # An ended race is not advanced any more: use as many draws as time permits.
                for entry in self.entries:
                    entry.ood.look(_AT_ONCE_S / len(self.entries))
        if wall is not None:
            if wall not in WALLS:
                raise BnnvizError(f"There is no wall {wall!r}; choose one of {', '.join(WALLS)}.", "wall")
            self.wall = wall
        if image is not None:
            self.queries.show(image)
        if what:
            super().watch(**what)

    def ood_sets(self) -> list[str]:
        """Return the names of the available out-of-distribution data sets."""
        return [each["name"] for each in _candidates(self.images)]

    def probabilities(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a sampler's predictions on test rows and out-of-distribution rows, (draws, rows, classes)."""
        entry = self.entries[number]
        known = entry.predictive_cache.probabilities
        return known, known[:, :0] if entry.ood is None else entry.ood.probabilities


def _rows(images: ImageSet, entry: Entry) -> Tensor:
    """Return the test rows of a set, scaled for a sampler's network."""
    return torch.as_tensor(images.scaled("test")[0], dtype=entry.target.dtype, device=entry.target.device)


def _candidates(images: ImageSet) -> list[dict[str, Any]]:
    """Return the other registered image sets of the same shape."""
    described = [datasets.describe(name) for name in datasets.names()]
    same = [each for each in described if each["shape"] == list(images.shape) and each["name"] != images.name]
    # Sets unsuitable for training can serve as out-of-distribution data.
    return sorted(same, key=lambda each: each["trainable"])


def _chosen(name: str, images: ImageSet) -> ImageSet:
    if name not in [each["name"] for each in _candidates(images)]:
        known = ", ".join(each["name"] for each in _candidates(images)) or "none"
        raise BnnvizError(f"There are no images of {name!r} of the same shape; choose one of: {known}.", "ood")
    found = datasets.load(name)
    return found.chosen(test=min(OOD_ROWS, len(found.y_test)))


def _first_ood(images: ImageSet) -> ImageSet | None:
    """Return the first other installed data set; None if unavailable."""
    for each in _candidates(images):
        try:
            return _chosen(each["name"], images)
        except BnnvizError:
            # Skip sets that are not installed, as the user did not request one.
            continue
    return None
