"""Maximise the likelihood."""

from __future__ import annotations

from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.baselines.descent import BATCHES, LONG, Point


@REGISTRY.add
class MLE(Point):
    """Maximum likelihood estimate by Adam.

    A chain is one descent of the negative log likelihood from a random start. The descent is the tuning; afterwards all
    draws of the chain are its end point, so one draw suffices. The learning rate decays to zero, linearly by default.
    Large networks fit their training rows ever more closely, so the number of steps is part of the method. On a density
    without a prior it finds a mode. Source: the PMCnet paper's ADAM-MLE, section 4.1.2; Kingma and Ba 2015.
    """

    registered = "mle"
    title = "Maximum likelihood (Adam)"
    regular = False
    presets = [BATCHES, LONG]
