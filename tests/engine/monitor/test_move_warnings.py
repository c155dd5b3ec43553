"""Sentences on chains that stand still, diverge, or keep their energy; right chains say nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from bnnviz import samplers
from bnnviz.engine.monitor.move_warnings import bfmi, of_moves
from bnnviz.engine.run.draw_store import DrawStore
from bnnviz.messages import Message
from bnnviz.samplers.observers import Draws
from bnnviz.specs.run import Spec
from bnnviz.targets.base import Callable

CHAINS, DRAWS = 4, 1000


def run(x: np.ndarray | None = None, *, weighted: bool = False, converges: bool = True, **stats: np.ndarray) -> Any:
    """Return what the warnings read of a run, of which chain 1 has failed."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(CHAINS, DRAWS, 2)) if x is None else x
    store = DrawStore(CHAINS + 1, 2, DRAWS, 0, torch.device("cpu"), torch.float64)
    alive = np.array([True, False, True, True, True])
    for chain, draws in zip(np.flatnonzero(alive), x, strict=True):
        index = torch.arange(DRAWS)
        store.add(Draws(torch.full_like(index, int(chain)), index, torch.as_tensor(draws)))
    name = "pmcnet" if weighted else "nuts" if converges else "map"
    return SimpleNamespace(
        sampler=samplers.REGISTRY.get(name)(),
        target=Callable(lambda x: 0.5 * x.square().sum(-1), 2),
        spec=Spec(target="mine", sampler=name, draws=DRAWS),
        minutes=None,
        chosen=False,
        store=store,
        alive=alive,
        sample_stats=stats,
    )


def reported(**given: Any) -> Message | None:
    """Return the one warning of a run, if there is one."""
    found = list(of_moves(run(**given)))
    assert len(found) <= 1
    return found[0] if found else None


def diverging(*places: tuple[int, int]) -> np.ndarray:
    made = np.zeros((CHAINS, DRAWS))
    for place in places:
        made[place] = 1
    return made


def test_chains_that_stand_still_are_named_by_their_numbers() -> None:
    x = np.random.default_rng(1).normal(size=(CHAINS, DRAWS, 2))
    x[1], x[3] = x[1, :1], np.repeat(x[3, :2], DRAWS // 2, axis=0)
    assert (reported(x=x).code, reported(x=x).values["numbers"]) == ("stuck", [2, 4])
    assert not reported(x=x, weighted=True) and not reported(x=x, converges=False)


@pytest.mark.parametrize(
    ("places", "count"),
    [
        ([], 0),
        ([(0, 10)], 0),
        ([(0, 10), (1, 500), (2, 30)], 0),
        ([(0, 10), (1, 500), (2, 30), (2, 700)], 4),
        ([(0, 10), (0, 17)], 2),
    ],
)
def test_one_in_a_thousand_or_a_cluster_that_diverged_is_reported(places: list[tuple[int, int]], count: int) -> None:
    found = reported(diverging=diverging(*places))
    assert (found.code, found.values["count"]) == ("divergences", count) if count else found is None


def test_trees_of_the_largest_depth_are_reported() -> None:
    reached = np.zeros((CHAINS, DRAWS))
    assert not reported(reached_max_treedepth=reached)
    reached[:, ::20] = 1
    found = reported(reached_max_treedepth=reached)
    assert found.code == "max_treedepth" and found.values["percent"] == pytest.approx(5)


def test_energies_that_change_slowly_are_reported() -> None:
    """An AR(1) process of coefficient a has the fraction 2 (1 - a): 0.2 for a = 0.9."""
    noise = np.random.default_rng(2).normal(size=(CHAINS, DRAWS))
    slow = np.zeros_like(noise)
    for n in range(1, DRAWS):
        slow[:, n] = 0.9 * slow[:, n - 1] + noise[:, n]
    assert np.all(bfmi(slow) < 0.29) and np.all(np.abs(bfmi(noise) - 2) < 0.3)
    energy = np.where(np.arange(CHAINS)[:, None] == 2, slow, noise)
    found = reported(energy=energy)
    assert (found.code, found.values["numbers"]) == ("low_bfmi", [3]) and 0 < found.values["bfmi"] < 0.3
    assert not reported(energy=noise)
