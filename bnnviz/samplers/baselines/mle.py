"""Maximise the likelihood."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.base import REGISTRY, preset
from bnnviz.samplers.baselines.descent import Descending, Point

#: Presets of the descents to a point.
PRESETS: list[dict[str, Any]] = [
    preset(
        "batches",
        "Mini-batches",
        "10,000 steps on mini-batches of 32 rows.",
        batch_size=32,
        steps=10_000,
        learning_rate=3e-3,
    ),
    preset("long", "A long descent", "20,000 steps with a cosine schedule.", steps=20_000, schedule="cosine"),
]


@REGISTRY.add
class MLE(Point, Descending):
    """Maximum likelihood estimate by Adam.

    A chain is one descent of the negative log likelihood from a random start. The descent is the tuning; afterwards all
    draws of the chain are its end point, so one draw suffices. The learning rate decays to zero, linearly by default.
    Large networks fit their training rows ever more closely, so the number of steps is part of the method. On a density
    without a prior it finds a mode. Source: the PMCnet paper's ADAM-MLE, section 4.1.2; Kingma and Ba 2015.
    """

    registered = "mle"
    title = "Maximum likelihood (Adam)"
    regular = False
    presets = PRESETS
