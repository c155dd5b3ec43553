"""Run one sampler of a race within its gradient budget and record its estimates."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.evaluation.predictions import chosen_draws, scores, weights
from bnnviz.engine.monitor.components import Components
from bnnviz.engine.race.estimates import FUNCTION_FIGURES, Estimates, MomentEstimates, worst_mixing
from bnnviz.engine.run.run import Run
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.samplers.observers import StepBatch
from bnnviz.targets import BNN

# Number of linearly and of geometrically spaced records, starting at this fraction of the budget.
_EVEN, _FACTORS, _FIRST = 40, 40, 1e-3
# Fraction of the budget by which a sampler may lead the others.
_STRETCH = 1 / 500
# Kept draws per chain, and their maximum numbers: few draws would limit the error from below.
_DRAWS, _NUMBERS, _FEWEST = 20_000, 20_000_000, 64
_FREE = 1000  # steps at once, if they cost no gradient
_SCORED = 400  # draws


class Note(NamedTuple):
    """Estimates after the given number of gradients and draws per chain."""

    gradients: int
    draws: int
    moments: MomentEstimates


def largest_step_cost(run: Run) -> int:
    """Return the maximum gradients of the next step of a run, over all its living chains."""
    if run.state is not None and run.sampler.is_free(run.state):
        return 0
    return run.sampler.gradients_per_step * int(run.alive.sum())


class Entry(ViewedRun):
    """Run a sampler until its budget of gradients is spent."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.budget = 0
        self.recorded: list[Note] = []
        self.estimates = Estimates(self)
        self._components = Components(self)
        self._measured: tuple[int, dict[str, float]] = (0, {})  # draws, and their metrics

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
    def warmup_moves(self) -> int:
        """Moves of the warm-up, which are charged."""
        return self.spec.warmup

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
    def over(self) -> bool:
        """Whether all chains diverged, the next step could exceed the budget, or the store is full."""
        if self.phase == "start" or self.diverged:
            return self.diverged
        cost = largest_step_cost(self)
        if not cost:
            return int(self.store.made[self.alive].min()) >= self.store.skip + self.capacity
        return self.gradients + cost > self.budget

    def go_on(self, seconds: float) -> int:
        """Take a block of steps, small enough for the others to keep up; return the number of steps."""
        before, cost = self.gradients, largest_step_cost(self)
        # Stop exactly at the next record, so that records do not depend on the slicing of time.
        place = np.searchsorted(self._schedule, before, side="right")
        record = int(self._schedule[min(place, len(self._schedule) - 1)])
        near = min(record, before + max(1, int(_STRETCH * self.budget))) - before
        most = max(1, min(-(-near // cost), (self.budget - before) // cost)) if cost else _FREE
        done = self.take(most, seconds)
        self._note(before)
        return done

    def step(self) -> None:
        """Take exactly one step."""
        before = self.gradients
        self.step_proposal()
        self._note(before)

    def _note_failures(self, step_batch: StepBatch) -> None:
        """Stop failing chains; the race reports their number."""
        notes = list(self.notes)
        super()._note_failures(step_batch)
        self.notes = notes

    @functools.cached_property
    def _schedule(self) -> np.ndarray:
        """The spent gradients at which estimates are recorded, the budget last."""
        shares = np.concatenate([np.linspace(0, 1, _EVEN + 1)[1:], np.geomspace(_FIRST, 1, _FACTORS)])
        return np.unique(np.ceil(shares * self.budget).astype(np.int64))

    def _note(self, before: int) -> None:
        """Record estimates when due and at the end."""
        passed = np.searchsorted(self._schedule, [before, self.gradients], side="right")
        if self.diverged or not (passed[1] > passed[0] or self.over):
            return
        moments = self.estimates.moments()
        if moments is not None:
            self.recorded.append(Note(self.gradients, self.store.common(self.alive), moments))

    def figures(self) -> dict[str, float]:
        """Return ESS and R-hat of the first component, and the scores of a network."""
        made = int(self.store.made.sum())
        if made != self._measured[0] and self.store.common(self.alive):
            self._measured = made, self._mixing() | self.scores()
        return self._measured[1]

    def scores(self) -> dict[str, float]:
        """Return the test scores of a network's draws; nothing for other targets."""
        if not isinstance(self.target, BNN):
            return {}
        if self.sampler.traits.weighted:
            return scores(self.target, self.resampled(_SCORED))
        return scores(self.target, weights(self.store, chosen_draws(self.store, self.alive, _SCORED)))

    def _mixing(self) -> dict[str, float]:
        if self.sampler.traits.weighted:
            ess, rhat = diagnostics.weight_ess(self.log_weights), float("nan")
        elif not self.sampler.traits.converges:  # one point, or draws of an approximation: no mixing
            ess = rhat = float("nan")
        else:
            self._components.refit()
            values = self._components.first.values
            ess, rhat = diagnostics.ess(values), diagnostics.rhat(values)
        return self._of_functions() | {
            "ess": ess,
            "rhat": rhat,
            "ess_per_s": ess / max(self.seconds, 1e-9),
            "ess_per_million": 1e6 * ess / max(self.gradients, 1),
        }

    def _of_functions(self) -> dict[str, float]:
        """Return the worst R-hat and smallest ESS of a network's predictions; nothing for other targets."""
        if not isinstance(self.target, BNN):
            return {}
        found = dict.fromkeys(FUNCTION_FIGURES, float("nan"))
        # Without records, evaluating the functions is too expensive.
        if self.sampler.traits.weighted or not self.sampler.traits.converges or not self.recorded:
            return found
        values = self.estimates.values()
        return dict(zip(FUNCTION_FIGURES, worst_mixing(values), strict=True))
