"""Sample by PMCnet: population Monte Carlo with gradient steps and robust covariances, of full matrices.

The formulas are in `bnnviz.samplers.importance.population`. Reference: Huang, Chouzenoux, Elvira and Pesquet
2023, Algorithm 1, equations 10 to 13, doi:10.1016/j.jfranklin.2023.08.044. The paper also requires eta_T = 0, which
has no effect, since nothing is drawn after the last iteration.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, preset
from bnnviz.samplers.importance.mixture import Full
from bnnviz.samplers.importance.population import ADAPT, Info, Population, State
from bnnviz.samplers.random import RandomNumbers

_COLUMNS = 64  # of a Hessian at a time


@REGISTRY.add
class PMCnet(Population):
    """Adaptive importance sampling with M normal proposals of full covariance and K draws from each.

    A chain is a proposal, so ``chains`` is M; each iteration makes K draws from every proposal. Draws have weights
    w = exp(-U) / mixture of all proposals. One survivor per proposal moves along the gradient, scaled by the proposal's
    new covariance; the step is halved until U falls. ``gradient=False`` is PMCnet-gradfree, ``adapt_covariance=False``
    PMCnet-covfree, both DM-PMC. ``covariance_from="curvature"`` is SL-PMC, whose covariances are inverse Hessians and
    whose steps are Newton steps.
    """

    registered = "pmcnet"
    title = "PMCnet"
    covariance = Full
    presets = [
        preset("gradfree", "PMCnet-gradfree", "Means are not updated by gradient steps.", gradient=False),
        preset("covfree", "PMCnet-covfree", "Covariances are not adapted.", adapt_covariance=False),
        preset(
            "dm-pmc",
            "DM-PMC",
            "Deterministic-mixture population Monte Carlo, without gradients and adaptive covariances.",
            gradient=False,
            adapt_covariance=False,
        ),
        preset(
            "sl-pmc",
            "SL-PMC",
            "Covariances are the inverse Hessians of U if they are positive definite.",
            covariance_from="curvature",
        ),
        preset(
            "reference",
            "As in the authors' code",
            "Resampling, covariances and step sizes as in the code of the authors.",
            variant="reference-code",
        ),
    ]

    covariance_from = settings.Choice(
        "weights",
        objects=["weights", "curvature"],
        when={"adapt_covariance": [True]},
        live=True,
        doc="weights: covariances follow the weighted draws, as in PMCnet. curvature: the inverse Hessian of U at each"
        " mean, as in SL-PMC, at the cost of one gradient per dimension. A covariance is not updated if the Hessian is"
        " not positive definite.",
    )

    @property
    def gradients_per_step(self) -> int:
        """Maximum number of data rows per phase and proposal: with a Hessian two for each dimension."""
        hessian = 2 * self.target.dim * self.target.examples if self._curved else 0
        return max(super().gradients_per_step, hessian)

    @property
    def _curved(self) -> bool:
        return self.adapt_covariance and self.covariance_from == "curvature"

    def _adapt(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Use the inverse Hessians as covariances, for ``covariance_from="curvature"``."""
        if not self._curved:
            return super()._adapt(rng, state)
        columns = torch.split(torch.eye(state.x.shape[1], dtype=state.x.dtype, device=state.x.device), _COLUMNS)
        product = self.target.gradient_and_product
        hessians = [torch.cat([product(x.expand(len(v), -1), v)[2] for v in columns]) for x in state.x]
        factor, sound = _inverse_factors(torch.stack(hessians))
        factor = torch.where(sound[:, None, None], factor.to(state.factor.dtype), state.factor)
        rows = 2 * self.target.dim * self.target.examples * len(state.x)
        return state._replace(factor=factor), Info(
            ADAPT, torch.zeros_like(state.alive), rows, fallbacks=int((~sound).sum())
        )


def _inverse_factors(hessians: Tensor) -> tuple[Tensor, Tensor]:
    """Return lower Cholesky factors of inverses (n, dim, dim), and where the matrices are positive definite."""
    matrices = hessians.double()
    lower, trouble = torch.linalg.cholesky_ex((matrices + matrices.mT) / 2)
    sound = (trouble == 0) & torch.isfinite(lower).flatten(1).all(1)
    eye = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
    made, failed = torch.linalg.cholesky_ex(torch.cholesky_inverse(torch.where(sound[:, None, None], lower, eye)))
    return made, sound & (failed == 0)
