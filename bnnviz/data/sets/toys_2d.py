"""Generate two classes in the plane that are not linearly separable.

The formulas are those of scikit-learn's ``make_moons`` and ``make_circles``, centred and scaled; they are repeated here
because workers have no scikit-learn. A fixed seed draws the noise, so that the points are always the same. Neither set
is standardised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bnnviz.data.dataset import DataSet, Task
from bnnviz.data.entry import DataEntry

_TEST_ROWS = 200
_BOX = ((-2.5, 2.5), (-2.5, 2.5))


@dataclass(frozen=True, kw_only=True)
class Shape(DataEntry):
    """Two curves in the plane, one for each class, with noise."""

    curves: Callable[[int], tuple[np.ndarray, np.ndarray]]
    noise_sd: float
    seed: int
    inputs: int = 2
    rows: int = 120
    task: Task = "classification"
    classes: int = 2
    standardised: bool = False

    def load(self, split: int) -> DataSet:
        """Generate the points; there is one split only."""
        rng = np.random.default_rng(self.seed)
        x_train, y_train = self._noisy(rng, self.rows)
        x_test, y_test = self._noisy(rng, _TEST_ROWS)
        return self.made(
            x_train=x_train,
            y_train=y_train,
            x_test=x_test,
            y_test=y_test,
            x_label="x1",
            y_label="class",
            class_names=("0", "1"),
            test_box=_BOX,
        )

    def _noisy(self, rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        x, y = self.curves(rows)
        return x + rng.normal(0.0, self.noise_sd, x.shape), y


def _moons(rows: int) -> tuple[np.ndarray, np.ndarray]:
    upper = np.linspace(0.0, np.pi, rows // 2)
    lower = np.linspace(0.0, np.pi, rows - rows // 2)
    x1 = np.concatenate([np.cos(upper), 1.0 - np.cos(lower)])
    x2 = np.concatenate([np.sin(upper), 0.5 - np.sin(lower)])
    return np.column_stack([x1 - 0.5, x2 - 0.25]), _labels(rows)


def _circles(rows: int) -> tuple[np.ndarray, np.ndarray]:
    outer = np.linspace(0.0, 2 * np.pi, rows // 2, endpoint=False)
    inner = np.linspace(0.0, 2 * np.pi, rows - rows // 2, endpoint=False)
    radius = np.where(_labels(rows) == 0, 1.5, 0.75)
    angle = np.concatenate([outer, inner])
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), _labels(rows)


def _labels(rows: int) -> np.ndarray:
    return (np.arange(rows) >= rows // 2).astype(float)


SETS = (
    Shape(
        name="moons",
        title="Two moons",
        doc="120 points of two interleaving half circles of radius 1, one for each class, with noise of sd 0.2."
        " Not standardised.",
        curves=_moons,
        noise_sd=0.2,
        seed=4,
    ),
    Shape(
        name="circles",
        title="Circle in a circle",
        doc="120 points on two concentric circles of radius 1.5 and 0.75, one for each class, with noise of sd 0.15."
        " Not standardised.",
        curves=_circles,
        noise_sd=0.15,
        seed=5,
    ),
)
