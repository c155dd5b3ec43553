"""Draw the predictions of a network with weights from its prior."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bnnviz.errors import BnnvizError
from bnnviz.figures.marks import Band, Drawing, extent
from bnnviz.figures.predictive.prediction import DRAWS, prediction

if TYPE_CHECKING:
    from bnnviz.targets import BNN


def prior_predictive(posterior: BNN, *, seed: int = 0, observations: bool = False) -> Drawing:
    """Plot the predictions of a network for 400 draws from its prior, and the data.

    The figure is that of `prediction`. For one input, its vertical axis covers the whole bands.

    Parameters
    ----------
    posterior : BNN
        The network and its data.
    seed : int, default 0
        Seed of the draws.
    observations : bool, default False
        Whether to show the 95 % predictive interval of observations.

    Examples
    --------
    >>> import bnnviz
    >>> import torch
    >>> from bnnviz import plots
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    >>> x = torch.linspace(-1, 1, 20)[:, None]
    >>> plots.prior_predictive(bnnviz.BNN(net, (x, x[:, 0] ** 2), noise_sd=0.1))
    :Overlay...
    """
    from bnnviz.engine.evaluation.metrics import prior_draws
    from bnnviz.targets import BNN

    if not isinstance(posterior, BNN):
        raise BnnvizError(f"Give a BNN, not {type(posterior).__name__}.", "posterior")
    drawing = prediction(prior_draws(posterior, DRAWS, seed), observations=observations)
    bands = [end for mark in drawing.marks if isinstance(mark, Band) for end in (mark.low, mark.high)]
    y = replace(drawing.y, ends=extent(*bands, drawing.y.ends))
    return replace(drawing, title="Prior predictive", y=y)
