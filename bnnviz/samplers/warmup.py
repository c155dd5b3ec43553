"""Warm a sampler up: steps of its kernel, each followed by what it teaches, in windows.

A window has `WINDOW` steps, however the steps are grouped into blocks, so that stepping, playing and a batch run give
the same draws. The warm-up ends with the first window after which the sampler is tuned, or at its `tuning_limit`; or
with a step, where a sampler says so (`Sampler.ends_warmup`).
"""

from __future__ import annotations

from typing import Any, Protocol

from bnnviz.samplers.base import Sampler
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers

WINDOW = 50  # steps


class Stepper(Protocol):
    """What takes a step: a sampler, or its compiled kernel."""

    def step(self, rng: RandomNumbers, state: Any) -> tuple[Any, Any]:
        """Return the next state and what happened."""


def step(sampler: Sampler, rng: RandomNumbers, state: Any, stepper: Stepper | None = None) -> tuple[Any, Any]:
    """Take a step of the warm-up, by the sampler or by its compiled kernel; return the state and what happened."""
    after, info = (stepper or sampler).step(rng, state)
    return sampler.adapt(rng, state, after, info), info


def take(
    sampler: Sampler,
    rng: RandomNumbers,
    state: Any,
    steps: int,
    first_step: int = 0,
    learns: bool = False,
    stepper: Stepper | None = None,
) -> StepBatch:
    """Take some steps one by one, in the warm-up with what they teach, up to its end.

    Parameters
    ----------
    sampler : Sampler
    rng : RandomNumbers
    state : Any
    steps, first_step : int
        How many, and the number of the first.
    learns : bool
        Whether this is the warm-up.
    stepper : Stepper, optional
        Takes them in the place of the sampler.
    """
    before, infos = [], []
    for _ in range(steps):
        before.append(state)
        state, info = step(sampler, rng, state, stepper) if learns else (stepper or sampler).step(rng, state)
        infos.append(info)
        if learns and sampler.ends_warmup(state):
            break
    return StepBatch(before, infos, state, first_step)


def steps_to_window(sampler: Sampler, steps: int) -> int:
    """Return how many steps there are from so many on to the end of a window, one at least.

    A sampler that warms up by moves has one window, which ends where its warm-up has to.
    """
    if sampler.traits.warms_up_by_moves:
        return max(sampler.tuning_limit - steps, 1)
    return WINDOW - steps % WINDOW


def is_window(sampler: Sampler, steps: int) -> bool:
    """Return whether a window ends after so many steps."""
    return steps >= sampler.tuning_limit if sampler.traits.warms_up_by_moves else steps % WINDOW == 0


def end_window(sampler: Sampler, rng: RandomNumbers, state: Any, steps: int) -> tuple[Any, bool]:
    """Return the state after so many steps, the end of a window, and whether the warm-up is over."""
    last = steps >= sampler.tuning_limit
    state = sampler.end_window(rng, state, last)
    return state, last or sampler.is_tuned(state)


def run(sampler: Sampler, rng: RandomNumbers, state: Any) -> Any:
    """Take chains through the whole warm-up; return the state at its end, which is yet to be frozen."""
    steps, over = 0, sampler.ends_warmup(state)
    while not over:
        state, _ = step(sampler, rng, state)
        steps += 1
        if is_window(sampler, steps):
            state, over = end_window(sampler, rng, state, steps)
        over = over or sampler.ends_warmup(state)
    return state
