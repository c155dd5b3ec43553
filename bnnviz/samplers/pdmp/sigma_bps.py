"""The Bouncy Particle Sampler with its scales learnt in a warm-up."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.pdmp.base import State
from bnnviz.samplers.pdmp.bps import BPS
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target

_LEAST = 1e-4  # of the largest scale: a coordinate that did not move in the warm-up still moves after it


@REGISTRY.add
class SigmaBPS(BPS):
    """Bouncy Particle Sampler in coordinates divided by A = diag(std), found in a warm-up.

    Moves w + A v t, bounces at rate max(0, v . A grad U), reflects v on A grad U. The velocity kept here is A v,
    that of w itself. Two readings: ``variant="corrected"`` refreshes v ~ N(0, velocity_sd^2 I), which the
    reflection leaves as it is; ``variant="paper"`` refreshes v ~ N(0, velocity_sd^2 A^2) as printed, and makes narrow
    coordinates narrower. std is that of each chain's path in the second half of the warm-up, averaged in time by
    Welford's sums (the paper: at 1,000 events of a plain BPS; its code starts the sums at 1, so that std >= 0.032).
    Source: the PDMP paper, section on sigma-BPS.
    """

    registered = "sigma_bps"
    title = "sigma-BPS"

    warmup_events = settings.Integer(
        1000,
        bounds=(20, 1_000_000),
        doc="Events, over all chains, of the plain Bouncy Particle that the scales are learnt from.",
    )
    variant = settings.Choice(
        "corrected",
        objects=["corrected", "paper"],
        doc="Refreshed velocities. corrected: normal in the scaled coordinates. paper: with variance std^2 in them, as"
        " printed, which the reflection does not keep: narrow coordinates come out too narrow.",
    )

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target; until the scales are learnt they are 1."""
        super().prepare(target, mode)
        self.scale = torch.ones(target.dim, dtype=target.dtype, device=target.device)
        self.learnt = False

    @property
    def learning(self) -> bool:
        """Whether the scales are still learnt."""
        return not self.learnt

    def end_window(self, rng: RandomNumbers, state: State, last: bool) -> State:
        """Learn the scales first, then the pace in the scaled coordinates."""
        sums = self._sums
        if not self.learning or sums is None:
            return super().end_window(rng, state, last)
        if last or (self.settled(state) and sums.ready(self.warmup_events)):
            return self.scaled(rng, state, sums.sd_within())
        sums.forget_half(self.warmup_events)
        return state

    def scaled(self, rng: RandomNumbers, state: State, sd: Tensor) -> State:
        """Return the state to go on from in coordinates divided by ``sd`` (dim,)."""
        self.scale = sd.clamp_min(_LEAST * float(sd.max())).to(self.target.dtype)
        self.learnt, self._sums = True, None
        state = self.resume(rng, state, moved=True)
        # Events come at another pace now.
        pace = self._guessed_pace(state.x, state.v)
        return self.resume(rng, state._replace(pace=pace, gaps=torch.zeros_like(state.gaps)))

    def metric(self) -> Tensor:
        """Return A^2 (dim,), in whose metric the reflection is orthogonal."""
        return self.scale.square()

    def draw_velocity(self, rng: RandomNumbers, like: Tensor) -> Tensor:
        """Draw A v with v from N(0, velocity_sd^2 I), or of the paper's variance."""
        scale = self.scale if self.variant == "corrected" else self.scale.square()
        return self.velocity_sd * scale * rng.normal(like.shape, like.dtype)

    def adopt(self, other: SigmaBPS) -> None:
        """Keep the scales that were learnt."""
        super().adopt(other)
        self.scale, self.learnt = other.scale, other.learnt

    def save(self, state: State) -> dict[str, Any]:
        """Return the state and the scales, and whether they are learnt."""
        return super().save(state) | {"scale": self.scale, "learnt": self.learnt}

    def load(self, saved: dict[str, Any], rng: RandomNumbers) -> State:
        """Take the scales over and return the saved state."""
        self.scale, self.learnt = saved["scale"].to(self.target.device), saved["learnt"]
        return super().load(saved, rng)
