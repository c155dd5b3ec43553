"""Run one sampler of a race within its gradient budget."""

from __future__ import annotations

import functools

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.race.comparison import Entry

# Number of linearly and of geometrically spaced records, starting at this fraction of the budget.
_EVEN, _FACTORS, _FIRST = 40, 40, 1e-3
# Fraction of the budget by which a sampler may lead the others.
_STRETCH = 1 / 500
# Kept draws per chain, and their maximum numbers: few draws would limit the error from below.
_DRAWS, _NUMBERS, _FEWEST = 20_000, 20_000_000, 64
_FREE = 1000  # steps at once, if they cost no gradient


class RaceEntry(Entry):
    """Run a sampler until its budget of gradients is spent."""

    budget = 0

    @property
    def draw_limit(self) -> int | None:
        """Maximum draws per chain; the gradient budget normally ends the sampler first."""
        return self.spec.draws

    @property
    def capacity(self) -> int:
        """Kept draws per chain."""
        room = _NUMBERS // (self.spec.chains * self.target.dim)
        return max(_FEWEST, min(_DRAWS, room) // 2 * 2)

    @property
    def diverged(self) -> bool:
        """Whether all its chains met values that are not finite."""
        return self.phase == "failed"

    @property
    def lost(self) -> int:
        """Chains that met values that are not finite."""
        return int((~self.alive).sum())

    @property
    def drawn(self) -> int:
        """Draws per chain; one for a sampler with a single point."""
        made = self.store.common(self.alive) * self.store.every
        return min(made, 1) if self.sampler.traits.one_point else made

    @property
    def standing(self) -> str:
        """The phase, or how it ended: done or diverged."""
        return "diverged" if self.diverged else "done" if self.over else self.phase

    @property
    def spent(self) -> int:
        """Gradients so far."""
        return self.gradients

    @property
    def step_cost(self) -> int:
        """Maximum gradients of the next step, over all living chains."""
        if self.state is not None and self.sampler.is_free(self.state):
            return 0
        return self.sampler.gradients_per_step * int(self.alive.sum())

    @property
    def over(self) -> bool:
        """Whether all chains diverged, the next step could exceed the budget, or the store is full."""
        if self.phase == "start" or self.diverged:
            return self.diverged
        cost = self.step_cost
        if not cost:
            return int(self.store.made[self.alive].min()) >= self.store.skip + self.capacity
        return self.gradients + cost > self.budget

    def go_on(self, seconds: float) -> int:
        """Take a block of steps, small enough for the others to keep up; return the number of steps."""
        before, cost = self.gradients, self.step_cost
        # Stop exactly at the next record, so that records do not depend on the slicing of time.
        place = np.searchsorted(self.schedule, before, side="right")
        record = int(self.schedule[min(place, len(self.schedule) - 1)])
        near = min(record, before + max(1, int(_STRETCH * self.budget))) - before
        most = max(1, min(-(-near // cost), (self.budget - before) // cost)) if cost else _FREE
        return self.take(most, seconds)

    @functools.cached_property
    def schedule(self) -> np.ndarray:
        """The spent gradients at which estimates are recorded, the budget last."""
        shares = np.concatenate([np.linspace(0, 1, _EVEN + 1)[1:], np.geomspace(_FIRST, 1, _FACTORS)])
        return np.unique(np.ceil(shares * self.budget).astype(np.int64))

    def mixing(self) -> dict[str, float]:
        """Return ESS and R-hat of the first component."""
        ess = rhat = float("nan")
        if self.sampler.traits.weighted:
            ess = diagnostics.weight_ess(self.log_weights)
        elif self.sampler.traits.converges:  # not one point, or draws of an approximation
            self.frames.components.refit()
            values = self.frames.components.first.values
            ess, rhat = diagnostics.ess(values), diagnostics.rhat(values)
        per_million = 1e6 * ess / max(self.gradients, 1)
        return {"ess": ess, "rhat": rhat, "ess_per_s": ess / max(self.seconds, 1e-9), "ess_per_million": per_million}
