"""Find the most probable weights."""

from __future__ import annotations

from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.baselines.descent import Descending, Point
from bnnviz.samplers.baselines.mle import PRESETS


@REGISTRY.add
class MAP(Point, Descending):
    """The posterior's mode by Adam: one point in the place of a distribution, with the prior as weight decay.

    A chain is one descent of U from its own random start; the descent is the tuning, and then every draw of the chain
    is the point that it ended at: one draw of one chain says all. Several chains come to several modes, which are not
    equally deep. The learning rate falls to zero, evenly unless asked otherwise. Source: the PMCnet paper's ADAM-MAP,
    section 4.1.2; Kingma and Ba 2015.
    """

    registered = "map"
    title = "Most probable weights (MAP)"
    regular = True
    presets = PRESETS
