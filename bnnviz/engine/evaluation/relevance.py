r"""Measure how much each column of a table matters: its total effect on the outputs, and the scale of its weights.

A column is encoded by one input, or by several, such as the levels of a category. With outputs f, and rows x in which
column c is replaced by that of another row x', columns are compared by

.. math:: s_c = \Big( \frac{1}{2 N} \sum_i \sum_j \big( f_j(x_{i, -c}, x'_{i, c}) - f_j(x_i) \big)^2 \Big)^{1/2}.

It is Jansen's estimate of the total effect for independent columns (Jansen 1999,
https://doi.org/10.1016/S0010-4655(98)00154-4), as a standard deviation: the slope times the standard deviation of the
column if f is linear. The learned scale is the prior's of the weights from an input to the first layer (automatic
relevance determination, Neal 1996, https://doi.org/10.1007/978-1-4612-0745-0). It does not contain a linear path.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import torch

from bnnviz.data import DataSet
from bnnviz.engine.evaluation.metrics import NetworkDraws, chosen
from bnnviz.errors import BnnvizError
from bnnviz.targets import BNN

_DRAWS, _PAIRS = (20, 100), (10, 1000)  # fewest for many columns, and most
_MOST = 30_000  # columns times pairs of rows, if the fewest do not exceed it
_INTERVAL = (0.025, 0.975)
_MOSTLY = 0.9  # minimum excess of changes in one direction, as a share of all: 95% go there
_SCALE = re.compile(r"log scale .*\[:, (\d+)\]$")


class Relevance(NamedTuple):
    """Relevance of each column of a table.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    effect, low, high : ndarray, shape (columns,)
        Posterior mean and central 95% interval of the total effect of a column: the standard deviation of the outputs
        when its values are exchanged between rows. Outputs of a regression are standardised.
    scale : ndarray, shape (columns,)
        Posterior median of the learned scale of the weights of the column, the largest one if several inputs encode
        it, or nan if it is not learned.
    direction : list of str
        ``rises`` if in 97.5% of the draws at least 95% of the change of the output, over all pairs of rows, have
        the sign of the column's change, ``falls`` if they have the other sign, and ``mixed`` otherwise. Of two
        classes the output is the second one's logit. Empty for categories, columns with gaps, and several outputs.

    Examples
    --------
    >>> import bnnviz
    >>> network = {"data": "concrete", "hidden": "10", "prior": "learned"}
    >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=5, warmup=5, chains=1)
    >>> len(run.relevance().names)
    8
    """

    names: list[str]
    effect: np.ndarray
    low: np.ndarray
    high: np.ndarray
    scale: np.ndarray
    direction: list[str]


def relevance(given: NetworkDraws, seed: int = 0) -> Relevance:
    """Return the relevance of each column, by at most 100 draws at 1000 pairs of training rows."""
    target = given.target
    if target.whole or target.x.ndim != 2:
        raise BnnvizError("Relevance requires a network on a table of numbers.", "target")
    inputs: dict[str, list[int]] = {}
    for place, name in enumerate(_columns(target)):
        inputs.setdefault(name, []).append(place)
    draws, pairs = (int(np.clip(_MOST // len(inputs), *limits)) for limits in (_DRAWS, _PAIRS))
    x, other = target.x[np.random.default_rng(seed).choice(len(target.x), (2, pairs))]
    theta = given.theta[torch.as_tensor(chosen(len(given.theta), given.log_weights, draws, seed))]
    with torch.no_grad():
        plain, effects, directions = target.outputs(theta, x).double(), [], []
        for places in inputs.values():
            exchanged = x.clone()
            exchanged[:, places] = other[:, places]
            change = target.outputs(theta, exchanged).double() - plain
            effects.append((change.square().sum(-1).mean(-1) / 2).sqrt().cpu().numpy())
            directions.append(_direction(change, (other - x)[:, places]))
    scales = np.full(x.shape[1], np.nan)
    for place, name in enumerate(target.scale_names):
        if found := _SCALE.match(name):
            logs = target.prior_precision**0.5 * theta[:, target.weights + place].double()
            scales[int(found[1])] = float(logs.median().exp())
    low, high = np.quantile(effects, _INTERVAL, axis=1)
    largest = np.array([scales[places].max() for places in inputs.values()])
    return Relevance(list(inputs), np.mean(effects, axis=1), low, high, largest, directions)


def _direction(change: torch.Tensor, step: torch.Tensor) -> str:
    """Return the direction of changes (draws, pairs, outputs) after steps (pairs, inputs) of a column."""
    if change.shape[-1] > 1 or step.shape[-1] > 1:
        return ""
    along = change[..., 0] * step[:, 0].sign()
    low, high = np.quantile((along.sum(1) / along.abs().sum(1).clamp(min=1e-300)).cpu().numpy(), _INTERVAL)
    return "rises" if low > _MOSTLY else "falls" if high < -_MOSTLY else "mixed"


def _columns(target: BNN) -> list[str]:
    """Return the column that each input encodes."""
    if isinstance(target.data_set, DataSet):
        return list(target.data_set.x_columns)
    return list(target.input_names) or [f"x{k + 1}" for k in range(target.x.shape[1])]
