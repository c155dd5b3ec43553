"""Generate one-dimensional regression toys of the papers on piecewise-deterministic samplers.

The formulas are from the authors' code; in `toy_a` and `toy_b` the noise also enters inside the sines, so that it is
heteroscedastic. A fixed seed draws the points, so that they are always the same. No toy is standardised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bnnviz.data.dataset import DataSet
from bnnviz.data.entry import DataEntry

NOISE_SD = 0.015
_TEST_ROWS = 200


@dataclass(frozen=True, kw_only=True)
class Toy(DataEntry):
    """A curve with noise."""

    draw: Callable[[np.random.Generator, int], np.ndarray]
    curve: Callable[[np.ndarray, np.ndarray | float], np.ndarray]
    interval: tuple[float, float]
    shift: float
    seed: int
    standardised: bool = False

    def load(self, split: int) -> DataSet:
        """Generate the points; there is one split only."""
        rng = np.random.default_rng(self.seed)
        x_train, y_train = self._noisy(rng, self.draw(rng, self.rows))
        x_test, y_test = self._noisy(rng, np.linspace(*self.interval, _TEST_ROWS))
        low, high = self.interval
        return self.made(
            x_train=x_train,
            y_train=y_train,
            x_test=x_test,
            y_test=y_test,
            test_interval=(low + self.shift, high + self.shift),
            truth=self.truth,
        )

    def truth(self, x: np.ndarray) -> np.ndarray:
        """Return the curve without noise at shifted inputs of shape (rows, 1)."""
        return self.curve(x[:, 0] - self.shift, 0.0)

    def _noisy(self, rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        noise = rng.normal(0.0, NOISE_SD, x.shape)
        return (x + self.shift)[:, None], self.curve(x, noise)


def _draw_a(rng: np.random.Generator, rows: int) -> np.ndarray:
    return rng.uniform(0.0, 0.5, rows)


def _curve_a(x: np.ndarray, noise: np.ndarray | float) -> np.ndarray:
    return x + 0.3 * np.sin(2 * np.pi * (x + noise)) + 0.3 * np.sin(4 * np.pi * (x + noise)) + noise


def _draw_b(rng: np.random.Generator, rows: int) -> np.ndarray:
    left = rows // 2
    return np.concatenate([rng.uniform(0.0, 0.6, left), rng.uniform(0.8, 1.0, rows - left)])


def _curve_b(x: np.ndarray, noise: np.ndarray | float) -> np.ndarray:
    return x + np.sin(4 * (x + noise)) + np.sin(13 * (x + noise)) + noise


def _draw_c(rng: np.random.Generator, rows: int) -> np.ndarray:
    return np.linspace(-0.45, 0.45, rows)


def _curve_c(x: np.ndarray, noise: np.ndarray | float) -> np.ndarray:
    return x * np.sin(4 * np.pi * x) + noise


SETS = (
    Toy(
        name="toy_a",
        title="Toy A: two sines",
        doc="500 points of x + 0.3 sin(2 pi x) + 0.3 sin(4 pi x) on an interval of length 0.5, shifted by -0.25; the"
        " noise (sd 0.015) acts inside the sines too. Not standardised.",
        inputs=1,
        rows=500,
        draw=_draw_a,
        curve=_curve_a,
        interval=(-0.2, 0.8),
        shift=-0.25,
        seed=1,
    ),
    Toy(
        name="toy_b",
        title="Toy B: two clusters with a gap",
        doc="500 points of x + sin(4 x) + sin(13 x) in two clusters, 0 to 0.6 and 0.8 to 1, shifted by -0.5, with a gap"
        " between the clusters; the noise (sd 0.015) acts inside the sines too. Not standardised.",
        inputs=1,
        rows=500,
        draw=_draw_b,
        curve=_curve_b,
        interval=(-0.5, 1.5),
        shift=-0.5,
        seed=2,
    ),
    Toy(
        name="toy_c",
        title="Toy C: few points of x sin(4 pi x)",
        doc="28 evenly spaced points of x sin(4 pi x) from -0.45 to 0.45, with noise of sd 0.015. The prior is visible"
        " outside the data. Not standardised.",
        inputs=1,
        rows=28,
        draw=_draw_c,
        curve=_curve_c,
        interval=(-0.6, 0.6),
        shift=0.0,
        seed=3,
    ),
)
