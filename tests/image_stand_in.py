"""A handful of images with what the engine asks of an image set, no files needed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Images:
    x_test: np.ndarray
    y_test: np.ndarray
    mean: tuple[float, ...]
    sd: tuple[float, ...]
    class_names: tuple[str, ...] = ("a", "b", "c")
    positive: int = 1

    def scaled(self, part: str) -> tuple[np.ndarray, np.ndarray]:
        mean, sd = (np.array(numbers, np.float32)[:, None, None] for numbers in (self.mean, self.sd))
        return (self.x_test.astype(np.float32) / 255 - mean) / sd, self.y_test

    def scaled_like(self, other: Images) -> Images:
        return replace(self, mean=other.mean, sd=other.sd)

    def chosen(self, test: int, seed: int = 0) -> Images:
        return replace(self, x_test=self.x_test[:test], y_test=self.y_test[:test])


def images(seed: int, rows: int = 40, channels: int = 2, **more) -> Images:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (rows, channels, 3, 3), dtype=np.uint8)
    scale = {"mean": (0.3, 0.6)[:channels], "sd": (0.2, 0.4)[:channels]} | more
    return Images(x, rng.integers(0, 3, rows), **scale)
