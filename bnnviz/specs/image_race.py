"""The spec of a gallery: a race of samplers on images, each asked what it is unsure of; plain JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bnnviz.specs.race import RaceSpec


@dataclass(frozen=True)
class GallerySpec(RaceSpec):
    """What is compared on the page of uncertainty: as a race, on a target of images."""

    factory: ClassVar[str] = "bnnviz.engine.race.image_race:ImageRace"
