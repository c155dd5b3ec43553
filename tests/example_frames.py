"""Scenes and frames of short runs, for tests of the views."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np

from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

FIRST_DRAWS = 50
STEPS_A_FRAME = 6  # so few that every frame has every part
NETWORKS = {"network1d": "toy_c", "network2d": "moons", "network_many": "boston", "network_classes": "control_50"}
SPECS = {"banana": Spec("banana", {}, "bps", chains=4, seed=3)} | {
    kind: Spec("network", {"data": data, "hidden": "6"}, "bps", {"mode_steps": 50}, chains=4, seed=5)
    for kind, data in NETWORKS.items()
}
KINDS = tuple(SPECS)


class Example:
    """A run and the frames that it has shown."""

    def __init__(self, kind: str) -> None:
        self.run = ViewedRun(SPECS[kind].replace(draws=None, warmup=20).checked())
        self.run.prepare()
        while self.run.phase != "sampling":
            self.run.advance(0.05)
        while self.run.store.counts.min() < FIRST_DRAWS:
            self.run.take(10)
        self.scene = self.run.scene() | {"run": f"example-{kind}"}
        self.frames: list[dict[str, Any]] = []

    def frame(self, seq: int) -> dict[str, Any]:
        while len(self.frames) <= seq:
            self.run.take(STEPS_A_FRAME)
            shown = self.run.frame(self.scene["emits"])
            shown["status"] |= {"playing": True, "speed": 1.0, "shared": False}
            self.frames.append(shown | {"seq": len(self.frames)})
        return copy.deepcopy(self.frames[seq])


example = cache(Example)


def example_scene(kind: str = "banana") -> dict[str, Any]:
    """Return the scene of a run of one kind."""
    return copy.deepcopy(example(kind).scene)


def example_frame(scene: dict[str, Any], seq: int, rng: np.random.Generator | None = None) -> dict[str, Any]:
    """Return a frame with every part that the scene emits."""
    return example(scene["run"].removeprefix("example-")).frame(seq)
