r"""Sample by PMCnet-light: diagonal covariances, and gradient steps on batches of rows.

It differs from `bnnviz.samplers.importance.population` in two phases. In *adapt* the covariances are diagonal (equation
15). In *move* the rows are divided into B batches, and with $\pi_b = p^{1/B} \ell_b$ for the prior p and the likelihood
of a batch (16) the means take a step on each,

$$\mu_m \leftarrow \mu_m + \tfrac{\gamma_{m,b}}{2} \Sigma_m \nabla \log \pi_b(\mu_m), \qquad b = 1, \dots, B$$

(17). Weights use all rows. Reference: Huang, Chouzenoux, Elvira and Pesquet 2023, equations 15 to 17,
doi:10.1016/j.jfranklin.2023.08.044.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, preset
from bnnviz.samplers.importance.mixture import Diagonal
from bnnviz.samplers.importance.population import Population, State


@REGISTRY.add
class PMCnetLight(Population):
    """PMCnet with diagonal covariances and one epoch of mini-batch gradient steps per iteration.

    A batch's density is prior^(1/B) times the likelihood of its rows. Each step has the factor 1/2, which the full
    version lacks (``variant="reference-code"`` omits it). Weights use all rows.
    """

    registered = "pmcnet_light"
    title = "PMCnet-light"
    covariance = Diagonal

    batches = settings.Integer(
        10, bounds=(1, 10_000), scale="log", doc="Number of batches of rows: B; not given in the paper."
    )
    presets = [preset("large", "As for large networks", "20 draws from each of 20 proposals.", draws_each=20)]

    def _climb(self, state: State) -> tuple[Tensor, Tensor, int]:
        """Return the means after a step on each batch, the halvings of the last step, and the rows used."""
        x, halvings, examples = state.x, state.halvings, 0
        half = 1.0 if self.variant == "reference-code" else 0.5
        for batch, rows, share in self._divided():
            potential, g = batch.gradient(x)
            # U of a batch, with its share of the prior, is the batch's estimate of U over B.
            ahead = -half * share * self.covariance.applied(state.factor, g)
            x, halvings, tries = self.shortened(x, ahead, potential, batch.potential)
            examples += (len(x) + tries) * rows
        return x, halvings, examples

    def _divided(self) -> list[tuple[Any, int, float]]:
        """Return the batches with their numbers of rows and shares; batches take every B-th row, for sorted tables."""
        rows = self.target.data_rows
        if rows is None or rows < 2:
            return [(self.target, self.target.examples, 1.0)]
        count = min(self.batches, rows)
        index = [torch.arange(first, rows, count, device=self.target.device) for first in range(count)]
        return [(self.target.part(part), len(part), len(part) / rows) for part in index]
