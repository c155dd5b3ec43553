r"""Measure how much each input of a network matters: the slope of its outputs, and the learned scale of its weights.

The learned scale is the prior's of the weights from an input to the first layer (automatic relevance determination,
Neal 1996, https://doi.org/10.1007/978-1-4612-0745-0). It does not contain a linear path, so inputs are compared by

.. math:: s_k = \Big( \frac{1}{N} \sum_i \sum_j \Big( \frac{\partial f_j(x_i)}{\partial x_{ik}} \Big)^2 \Big)^{1/2}
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import torch

from bnnviz.engine.evaluation.metrics import NetworkDraws, chosen
from bnnviz.engine.evaluation.predictions import evenly
from bnnviz.errors import BnnvizError

_DRAWS, _ROWS = 100, 300
_INTERVAL = (0.025, 0.975)
_SCALE = re.compile(r"log scale .*\[:, (\d+)\]$")


class Relevance(NamedTuple):
    """Relevance of each input.

    Attributes
    ----------
    names : list of str
        Names of the inputs.
    slope, low, high : ndarray, shape (inputs,)
        Posterior mean and central 95 % interval of the root mean square of the derivatives of the outputs by the input
        at the training rows. Inputs, and outputs of a regression, are standardised.
    scale : ndarray, shape (inputs,)
        Posterior median of the learned scale of the weights of the input, or nan if it is not learned.

    Examples
    --------
    >>> import bnnviz
    >>> network = {"data": "concrete", "hidden": "10", "prior": "learned"}
    >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=5, warmup=5, chains=1)
    >>> len(run.relevance().names)
    8
    """

    names: list[str]
    slope: np.ndarray
    low: np.ndarray
    high: np.ndarray
    scale: np.ndarray


def relevance(given: NetworkDraws) -> Relevance:
    """Return the relevance of each input, by at most 100 draws at 300 training rows."""
    target = given.target
    if target.whole or target.x.ndim != 2:
        raise BnnvizError("Relevance requires a network on a table of numbers.", "target")
    x = target.x[evenly(len(target.x), _ROWS)]
    theta = given.theta[torch.as_tensor(chosen(len(given.theta), given.log_weights, _DRAWS, 0))]
    slopes = np.sqrt([_squares(target, draw[None], x) for draw in theta])
    scales = np.full(x.shape[1], np.nan)
    for place, name in enumerate(target.scale_names):
        if found := _SCALE.match(name):
            logs = target.prior_precision**0.5 * theta[:, target.weights + place].double()
            scales[int(found[1])] = float(logs.median().exp())
    names = target.input_names or [f"x{k + 1}" for k in range(x.shape[1])]
    return Relevance(list(names), slopes.mean(0), *np.quantile(slopes, _INTERVAL, axis=0), scales)


def _squares(target: object, theta: torch.Tensor, x: torch.Tensor) -> np.ndarray:
    """Return the mean over rows of the squared slopes (inputs,) of all outputs of one draw."""
    with torch.enable_grad():
        rows = x.detach().clone().requires_grad_(True)
        f = target.outputs(theta, rows)[0]
        slopes = [torch.autograd.grad(column.sum(), rows, retain_graph=True)[0] for column in f.unbind(1)]
    return torch.stack(slopes).square().sum(0).mean(0).double().cpu().numpy()
