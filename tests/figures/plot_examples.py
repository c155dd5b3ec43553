"""Sources of draws and parts of frames that figures are tested on."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from bnnviz.engine.recording.arviz import tree
from tests import example_parts
from tests.example_frames import example_frame, example_scene


@functools.cache
def draws() -> np.ndarray:
    """Return autocorrelated draws (4 chains, 200 draws, 3 coordinates)."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, 200, 3))
    for step in range(1, 200):
        noise[:, step] = 0.8 * noise[:, step - 1] + 0.6 * noise[:, step]
    return noise


def made_tree(weighted: bool = False) -> Any:
    """Return an ArviZ tree of these draws as a run makes one."""
    diverging = np.zeros((4, 200))
    diverging[1, 50] = diverging[2, 7] = 1.0
    logs = -0.5 * draws()[..., 0] ** 2 if weighted else None
    return tree(draws(), logs, ["a", "b", "c"], {"spec": {"sampler": "bps"}}, {"diverging": diverging})


def part(kind: str, name: str) -> dict[str, Any]:
    """Return a part of an example frame with its scene, as one dict."""
    scene = example_scene(kind)
    return example_frame(scene, 60)[name] | {"scene": scene}


def probabilities(classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities (30 draws, 120 rows, classes) and observed classes."""
    return example_parts.drawn_probabilities(120, 1.0, 1, classes)
