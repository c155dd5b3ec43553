"""Find the most probable weights."""

from __future__ import annotations

from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.baselines.descent import BATCHES, LONG, Point


@REGISTRY.add
class MAP(Point):
    """Maximum a posteriori (MAP) estimate by Adam, with the prior as weight decay.

    A chain is one descent of U from a random start. The descent is the tuning; afterwards all draws of the chain are
    its end point, so one draw suffices. Several chains reach several modes, which differ in U. The learning rate
    decays to zero, linearly by default. Source: the PMCnet paper's ADAM-MAP, section 4.1.2; Kingma and Ba 2015.
    """

    registered = "map"
    title = "Most probable weights (MAP)"
    regular = True
    presets = [BATCHES, LONG]
