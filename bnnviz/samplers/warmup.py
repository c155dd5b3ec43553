"""Warm a sampler up: steps of its kernel in windows, each step followed by adaptation.

A window has `WINDOW` steps, independent of the grouping into blocks, so that stepping, playing and a batch run give the
same draws. The warm-up ends with the first window after which the sampler is tuned, at its `tuning_limit`, or with a
step after which `Sampler.ends_warmup` is true.
"""

from __future__ import annotations

from typing import Any, Protocol

from bnnviz.samplers.base import Sampler
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers

WINDOW = 50  # steps


class Stepper(Protocol):
    """Takes steps: a sampler or its compiled kernel."""

    def step(self, rng: RandomNumbers, state: Any) -> tuple[Any, Any]:
        """Return the next state and the step's info."""


def step(sampler: Sampler, rng: RandomNumbers, state: Any, stepper: Stepper | None = None) -> tuple[Any, Any]:
    """Take a warm-up step by the sampler or its compiled kernel; return the state and the info."""
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
    """Take steps one by one; with ``learns``, adapt after each and stop at the end of the warm-up."""
    before, infos = [], []
    for _ in range(steps):
        before.append(state)
        state, info = step(sampler, rng, state, stepper) if learns else (stepper or sampler).step(rng, state)
        infos.append(info)
        if learns and sampler.ends_warmup(state):
            break
    return StepBatch(before, infos, state, first_step)


def steps_to_window(sampler: Sampler, steps: int) -> int:
    """Return the number of steps to the end of the window, or of a warm-up by moves, at least one."""
    if sampler.traits.warms_up_by_moves:
        return max(sampler.tuning_limit - steps, 1)
    return WINDOW - steps % WINDOW


def is_window(sampler: Sampler, steps: int) -> bool:
    """Return whether a window ends after ``steps`` steps."""
    return steps >= sampler.tuning_limit if sampler.traits.warms_up_by_moves else steps % WINDOW == 0


def end_window(sampler: Sampler, rng: RandomNumbers, state: Any, steps: int) -> tuple[Any, bool]:
    """Return the state after a window that ends at ``steps``, and whether the warm-up is over."""
    last = steps >= sampler.tuning_limit
    state = sampler.end_window(rng, state, last)
    return state, last or sampler.is_tuned(state)


def run(sampler: Sampler, rng: RandomNumbers, state: Any) -> Any:
    """Run the whole warm-up; return the state at its end, before `Sampler.freeze`."""
    steps, over = 0, sampler.ends_warmup(state)
    while not over:
        state, _ = step(sampler, rng, state)
        steps += 1
        if is_window(sampler, steps):
            state, over = end_window(sampler, rng, state, steps)
        over = over or sampler.ends_warmup(state)
    return state
