r"""Judge an approximation that has a density by the importance weights of its own draws.

With draws :math:`x_i` of an approximation q and :math:`w_i = \exp(-U(x_i)) / q(x_i)`, the shape of the weights' tail,
Pareto k-hat, measures how far q is from the posterior at points with little mass under q (Yao, Vehtari, Simpson and
Gelman 2018, Yes, but did it work? Evaluating variational inference, https://doi.org/10.48550/arXiv.1802.02538). It is
small for approximations that are too wide, too, so the total variation distance is estimated as well,

.. math::
    \frac12 \int |p - q| \approx \frac12 \sum_i \left| \bar w_i - \frac1n \right|, \qquad
    \bar w_i = w_i / \sum_j w_j,

which bounds the error of any probability. For k-hat above 0.7 the weights have not converged, and the distance usually
exceeds its estimate. Draws with non-finite U have no weight. Neither metric detects a mode without draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from bnnviz import diagnostics
from bnnviz.engine.monitor import remedies
from bnnviz.engine.monitor.importance import GOOD_K
from bnnviz.engine.protocol import AnyRun
from bnnviz.messages import Message
from bnnviz.samplers.random import seeded
from bnnviz.targets import BNN

_NEAR, _FAR = 0.01, 0.1  # total variation distances: below the first the tail is ignored, the second is reported
_AT_ONCE = 256  # draws
_WORK, _MOST_DRAWS, _LEAST_DRAWS = 3e9, 2000, 200  # multiply-adds of U, and draws, for the weights
_OUTSIDE = 1e-3  # reported share of draws with non-finite U: fewer may be overflows


def measured_approximation(run: AnyRun) -> dict[str, float | None]:
    """Return metrics of a sampler's approximation; {} for samplers without an approximation of known density.

    ``pareto_k`` is the shape of the weights' tail, ``total_variation`` the distance from the density, and
    ``infinite_share`` the share of draws with non-finite U. They are None if U takes too long or there are no draws;
    ``pareto_k`` also for equal weights, as of an exact approximation.
    """
    if not run.sampler.traits.has_density:
        return {}
    names = ("pareto_k", "total_variation", "infinite_share")
    count = int(min(_MOST_DRAWS, _WORK / (2 * max(run.target.examples, 1) * max(run.target.row_work, 1))))
    if count < _LEAST_DRAWS or not run.draws.size:
        return dict.fromkeys(names)
    x, log_density = run.sampler.approximation(seeded(0, run.device), run.state, count)
    if not len(x):
        return dict.fromkeys(names)
    target = run.target.clone()
    potential = torch.cat([target.defined_potential(part).detach() for part in torch.split(x, _AT_ONCE)]).double()
    finite = torch.isfinite(potential)
    logs = torch.where(finite, -potential - log_density.double(), -torch.inf).cpu().numpy()
    k, shares = diagnostics.pareto_k(logs), diagnostics.normalised(logs)
    # If all weights are zero, the supports do not overlap.
    distance = float(np.abs(shares - 1 / len(logs)).sum() / 2) if shares.any() else 1.0
    outside = 1 - float(finite.double().mean())
    return dict(zip(names, (float(k) if np.isfinite(k) else None, distance, outside), strict=True))


def of_approximation(run: AnyRun, found: dict[str, Any]) -> Iterator[Message]:
    """Warn if a sampler's approximation is poor, from what `measured_approximation` has found."""
    k, distance, outside = (found.get(name) for name in ("pareto_k", "total_variation", "infinite_share"))
    if distance is None:
        return
    if outside > _OUTSIDE:
        bounds = [remedies.NAME_BOUNDS] if run.own_target and not isinstance(run.target, BNN) else []
        reference = remedies.reference_sampler("use HMC or NUTS")
        yield Message("approximation_outside", *bounds, reference, percent=100 * outside)
    long = k is not None and k >= GOOD_K and distance >= _NEAR
    if long or distance - outside >= _FAR:
        yield Message(
            "approximation_poor",
            remedies.reference_sampler("use HMC or NUTS for variances and tails"),
            k=k,
            distance=distance,
            tail=f"Pareto k-hat {k:.2f}, should be below {GOOD_K}; " if long else "",
            more=" or more" if long else "",
        )
