"""Run chains of a bare kernel, all to the same path time: what tables of known answers are made of."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from bnnviz.errors import BnnvizError
from bnnviz.samplers import Sampler
from bnnviz.samplers.observers import DrawCollector, StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target

_BLOCK = 16


@contextmanager
def one_thread() -> Iterator[None]:
    """Have torch work on one thread: for a step of small tensors a second one costs more than it brings."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class ChainDraws(NamedTuple):
    """Draws (chains, draws, dim) and, where the sampler gives them, the integrals along the path up to each.

    ``path`` has the shape (chains, draws, 1 + 2 dim): time, and the integrals of the position and of its square. The
    draws are of ``draw_collector``.
    """

    draws: np.ndarray
    path: np.ndarray | None
    draw_collector: DrawCollector


def begin(
    target: Target,
    sampler: Sampler,
    x0: np.ndarray,
    rng: RandomNumbers,
    mode: np.ndarray | None = None,
    dtype: torch.dtype = torch.float64,
) -> Any:
    """Bind a sampler to a target; return the state of chains at x0 (chains, dim), with no warm-up.

    A sampler with a centre has that of the mode: one at each chain's own beginning would know where that is, and chains
    that begin as the target is spread would not stay so.
    """
    target.to("cpu", dtype)
    if mode is not None and "one_mode" in getattr(sampler.param["start"], "objects", ()):
        sampler.start = "one_mode"
    sampler.prepare(target, None if mode is None else torch.as_tensor(mode, dtype=dtype))
    return sampler.init(torch.as_tensor(x0, dtype=dtype), rng)


def move(sampler: Sampler, rng: RandomNumbers, state: Any, x0: np.ndarray) -> Any:
    """Return the state of chains that set out anew from x0, with what the sampler has learnt.

    Chains that took equally many steps are not spread as the target is, however they began: a draw made there would be
    biased for a while.
    """
    return sampler.moved_to(rng, state, torch.as_tensor(x0, dtype=state.x.dtype))


def follow(sampler: Sampler, rng: RandomNumbers, state: Any, draws: int, patience: float = float("inf")) -> ChainDraws:
    """Follow all chains until each has made its draws.

    Raises
    ------
    BnnvizError
        If it takes longer than ``patience`` seconds. Chains that are slow are slow for where they are: without them
        the others would be a biased choice.
    """
    state = sampler.freeze(rng, state)
    draw_collector, chains, dim = sampler.draw_collector(rng, state), *state.x.shape
    kept = torch.zeros(chains, draws, dim, dtype=state.x.dtype)
    path = torch.zeros(chains, draws, 1 + 2 * dim).double() if sampler.integrates(chains, dim) else None
    end = time.monotonic() + patience
    while int(draw_collector.made.min()) < draws:
        if time.monotonic() > end:
            raise BnnvizError(
                f"The chains did not make their {draws} draws within {patience:g} s; give more --seconds."
            )
        state, rows = _block(sampler, rng, draw_collector, state)
        inside = rows.index < draws
        where = rows.chain[inside], rows.index[inside]
        kept[where] = rows.x[inside]
        if path is not None and rows.path is not None:
            path[where] = rows.path[inside]
    return ChainDraws(kept.numpy(), None if path is None else path.numpy(), draw_collector)


def _block(sampler: Sampler, rng: RandomNumbers, draw_collector: Any, state: Any) -> tuple[Any, Any]:
    before, infos = [], []
    for _ in range(_BLOCK):
        before.append(state)
        state, info = sampler.step(rng, state)
        infos.append(info)
    return state, draw_collector.collect(StepBatch(before, infos, state, 0))
