"""Divide an experiment into parts by data set, at a scale that takes minutes or at the paper's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bnnviz import data as datasets
from bnnviz.errors import BnnvizError
from bnnviz.experiments.experiment import Experiment

SCALES = ("small", "paper")


@dataclass(frozen=True)
class ScaledExperiment(Experiment):
    """An experiment on images with a part for each data set, at two scales."""

    data: str = ""
    scale: str = "small"
    parts: tuple[str, ...] = ()
    build: Callable[[str, str], ScaledExperiment] | None = field(default=None, repr=False, compare=False)

    def at(self, data: str | None, scale: str | None) -> ScaledExperiment:
        """Return the part for a data set at a scale; None keeps the current one."""
        data, scale = data or self.data, scale or self.scale
        if data not in self.parts:
            raise BnnvizError(f"{self.name} has no part {data!r}; choose one of {', '.join(self.parts)}.", "data")
        if scale not in SCALES:
            raise BnnvizError(f"There is no scale {scale!r}; choose one of {', '.join(SCALES)}.", "scale")
        return self.build(data, scale)

    def check(self) -> None:
        """Raise a `BnnvizError` with alternatives if images of its runs are missing."""
        try:
            images = datasets.load(self.data)
            missing = "" if len(images.y_train) else f"There are no training images of {self.data} here: fetch the set."
        except BnnvizError as error:
            images, missing = None, error.sentence
        if missing:
            others = [name for name in self.parts if name != self.data and datasets.is_here(name)]
            stand_in = f" Alternatively use --data {' or '.join(others)}." if others else ""
            raise BnnvizError(missing + stand_in, "data")
        if images.stands_in:
            self._check_rows(images)

    def _check_rows(self, images: datasets.ImageSet) -> None:
        """Raise if its runs request more rows than a part of a set has."""
        asked = [spec.target_settings for case in self.cases for spec in case.specs]
        for what, there in (("train", len(images.y_train)), ("test", len(images.y_test))):
            requested = [settings.get(f"{what}_rows") for settings in asked]
            if any(rows is None or rows > there for rows in requested):
                kind = {"train": "training", "test": "test"}[what]
                raise BnnvizError(
                    f"{self.name} at the scale {self.scale!r} needs the whole of {images.title}, of which {there:,}"
                    f" {kind} images come with bnnviz: get it with 'bnnviz data fetch {self.data}', or choose --scale"
                    " small.",
                    "data",
                )
