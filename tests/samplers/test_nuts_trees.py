"""Trees of NUTS end exactly where a dyadic subtree turns, at either of its ends."""

from __future__ import annotations

import numpy as np
import torch

from bnnviz import samplers, targets
from bnnviz.samplers.random import seeded


def turns(momenta: list[np.ndarray]) -> bool:
    """Return whether a trajectory turns: the criterion of Betancourt 2017 with the ends counted half."""
    total = np.sum(momenta, axis=0) - 0.5 * (momenta[0] + momenta[-1])
    return bool(momenta[0] @ total <= 0 or momenta[-1] @ total <= 0)


class Tree:
    """The momenta of one chain's tree, in order of time."""

    def __init__(self, first: np.ndarray) -> None:
        self.whole, self.subtree, self.depth = [first], [], 0

    def add(self, momentum: np.ndarray, direction: float) -> bool:
        """Add a leapfrog point; return whether the tree has to end."""
        self.subtree.append(momentum)
        count = len(self.subtree)
        blocks = [2**j for j in range(1, 20) if count % 2**j == 0]
        if any(turns(self.subtree[-size:]) for size in blocks):
            return True
        if count < 2**self.depth:
            return False
        self.whole = self.whole + self.subtree if direction > 0 else self.subtree[::-1] + self.whole
        self.subtree, self.depth = [], self.depth + 1
        return turns(self.whole)


def test_a_tree_ends_at_the_first_subtree_that_turns() -> None:
    target = targets.REGISTRY.get("gaussian")(size=3, correlation=0.9).to("cpu", torch.float64)
    sampler, rng = samplers.NUTS(step_size=0.23, metric="unit"), seeded(5)
    sampler.prepare(target, None)
    state = sampler.init(target.initial(4, rng.generator), rng)
    trees: list[Tree | None] = [None] * 4
    ends = 0
    for _ in range(800):
        drawn = sampler.pre_draw(rng, state)
        for chain in state.fresh.nonzero()[:, 0].tolist():
            trees[chain] = Tree(drawn[0][chain].numpy())
        state, info = sampler.kernel(rng, state, *drawn)
        for chain, tree in enumerate(trees):
            expected = tree.add(state.front.momentum[chain].numpy().copy(), float(state.direction[chain]))
            assert bool(info.ended[chain]) == expected
            ends += expected
    assert ends > 100
