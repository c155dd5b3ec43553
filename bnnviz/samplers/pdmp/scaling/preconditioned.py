"""Add a metric, learned in the warm-up, to a straight-line process."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from bnnviz import settings
from bnnviz.samplers.base import Sampler
from bnnviz.samplers.mcmc.metric import WindowSums
from bnnviz.samplers.pdmp.base import PDMP
from bnnviz.samplers.pdmp.scaling.preconditioner import DENSE, Preconditioner
from bnnviz.samplers.pdmp.warmup import PathSums


class Preconditioned(Sampler):
    """A setting for the metric of a straight-line process, learned in warm-up rounds: a mixin of `PDMP`."""

    first_events = 80

    presets: ClassVar[list[dict[str, Any]]] = [
        preset if preset["name"] == "exact" else preset | {"settings": {**preset["settings"], "metric": "unit"}}
        for preset in PDMP.presets
    ]

    metric = settings.Choice(
        "auto",
        objects=["auto", "diagonal", "dense", "unit"],
        doc="Scales of the coordinates, learned in a warm-up of about 2,000 steps. diagonal: one per coordinate, and"
        " for networks one per coordinate and chain, because chains start at different modes. dense: with correlations."
        f" unit: all equal to one. auto: on custom functions dense up to {DENSE} dimensions and diagonal"
        " above; unit otherwise.",
    )

    @property
    def learns_from_points(self) -> bool:
        """Whether a metric is learned."""
        return self.scales_are_unknown if self.metric == "auto" else self.metric != "unit"

    @property
    def dense(self) -> bool:
        """Whether the metric has correlations; a shared metric does not fit different modes."""
        if self.metric != "auto":
            return self.metric == "dense"
        return self.scales_are_unknown and self.target.dim <= DENSE

    def first_scaling(self) -> Preconditioner | tuple[()]:
        """Return scales of one."""
        if not self.learns_from_points:
            return ()
        like = torch.ones(self.target.dim, dtype=self.target.dtype, device=self.target.device)
        return Preconditioner.unit(like, self.dense)

    def learned_scaling(self, sums: PathSums, points: WindowSums | None, before: Preconditioner) -> Preconditioner:
        """Return the metric learned in a round."""
        return before if points is None else self.preconditioner(before, len(sums.time)).learned(points)

    def preconditioner(self, scaling: Preconditioner, chains: int) -> Preconditioner:
        """Return the scaling with separate scales for each chain, if chains start at different modes."""
        each = scaling.factor is None and scaling.scale.ndim == 1 and self.target.start_at_mode
        return scaling.of_each(chains) if each else scaling
