"""Maximise the likelihood."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.baselines.descent import Descending, Point

#: Presets of the descents to a point.
PRESETS: list[dict[str, Any]] = [
    {
        "name": "batches",
        "title": "Mini-batches",
        "doc": "10,000 steps on 32 rows each, as networks are trained on large data.",
        "settings": {"batch_size": 32, "steps": 10_000, "learning_rate": 3e-3},
    },
    {
        "name": "long",
        "title": "A long descent",
        "doc": "20,000 steps that grow smaller along a cosine: as far down as Adam gets.",
        "settings": {"steps": 20_000, "schedule": "cosine"},
    },
]


@REGISTRY.add
class MLE(Point, Descending):
    """Maximum likelihood by Adam: the network as it is usually trained, without a prior and without uncertainty.

    A chain is one descent of the negative log likelihood from its own random start; the descent is the tuning, and then
    every draw of the chain is the point that it ended at: one draw of one chain says all. The learning rate falls to
    zero, evenly unless asked otherwise. Large networks fit their training rows ever more closely: how many steps it
    takes is a part of the method. On a density that is no posterior, which has no prior to drop, it is the way to a
    mode. Source: the PMCnet paper's ADAM-MLE, section 4.1.2; Kingma and Ba 2015.
    """

    registered = "mle"
    title = "Maximum likelihood (Adam)"
    regular = False
    presets = PRESETS
