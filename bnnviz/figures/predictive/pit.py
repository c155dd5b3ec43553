"""Draw on which side predicted distributions of numbers are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.marks import Axis, Band, Bars, Drawing, Mark, chain
from bnnviz.figures.predictive.calibration import BAND, FILLED, RIGHT

_SHADE = 0.5


def pit(source: Any, *, bins: int = 10) -> Drawing:
    """Plot a histogram of probability integral transforms (PIT) of the observations.

    The PIT is the predictive distribution function at the observation. Its histogram is flat for calibrated
    predictions, and each bin is within the band with probability 95 %. A U shape indicates overconfident predictions,
    an inverted U predictive distributions that are too wide, and a slope biased predictions.

    Parameters
    ----------
    source : Run, Recording, path, array, list or dict
        A regression network, evaluated on its test rows; transforms (rows,); or a dict of these by name.
    bins : int, default 10
        Number of bins of equal width from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.pit(rng.beta(0.5, 0.5, 400))  # overconfident
    :Overlay...
    """
    found = parts.number_transforms(source)
    if found is None:
        raise BnnvizError("The predictions are classes. Use plots.calibration.", "source")
    made = [(each.name, diagnostics.coverage(each.transforms, bins=bins)) for each in found]
    marks: list[Mark] = [
        Band([0, 1], [one.density_low] * 2, [one.density_high] * 2, colour="muted", opacity=BAND, label=RIGHT)
        for one in {one.rows: one for _, one in made}.values()
    ]
    for place, (name, one) in enumerate(made):
        width = FILLED * float(np.diff(one.edges)[0]) / len(made)
        middles = (one.edges[1:] + one.edges[:-1]) / 2 + (place - (len(made) - 1) / 2) * width
        label = f"{name}, {one.rows:,} rows"
        marks.append(Bars(middles, one.density, width, colour=chain(place), opacity=_SHADE, label=label))
    top = 1.08 * max(max(float(one.density.max()), one.density_high) for _, one in made)
    x = Axis("probability of at most the observation", (0.0, 1.0), follow="exact")
    return Drawing(marks, x=x, y=Axis("density", (0.0, top), "exact"))
