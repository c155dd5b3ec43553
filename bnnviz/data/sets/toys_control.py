"""Generate the PMCnet paper's control set (Huang et al. 2023, section 4.2.1): two classes by a known network.

The paper defines the network and the distributions of inputs and weights, but not how labels follow from the network's
output: drawn with that probability, or the likelier class. Both versions are available.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnnviz.data.dataset import DataSet, Task
from bnnviz.data.entry import DataEntry

TEST_ROWS = 400
UNITS = 3
WEIGHT_SD = 2.0
_MOST_ROWS = 1600


@dataclass(frozen=True)
class ControlNetwork:
    """A 3-3-1 network with tanh units whose output is the logit of class 1."""

    first: np.ndarray
    first_bias: np.ndarray
    second: np.ndarray
    second_bias: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator) -> ControlNetwork:
        """Draw all weights from N(0, 2^2)."""
        shapes = ((UNITS, UNITS), (UNITS,), (UNITS,), ())
        return cls(*(rng.normal(0.0, WEIGHT_SD, shape) for shape in shapes))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the probability of class 1 (rows,) at inputs (rows, 3)."""
        logit = np.tanh(x @ self.first.T + self.first_bias) @ self.second + self.second_bias
        return 1.0 / (1.0 + np.exp(-logit))


@dataclass(frozen=True, kw_only=True)
class ControlSet(DataEntry):
    """Inputs N(0, 1) and labels of a network whose weights are drawn, one network for each split."""

    threshold: bool
    inputs: int = UNITS
    task: Task = "classification"
    classes: int = 2
    splits: int = 20
    standardised: bool = False

    def load(self, split: int) -> DataSet:
        """Generate a network and its rows; sets of another size have the same network and the same test rows."""
        rng = np.random.default_rng([6, split])
        truth = ControlNetwork.draw(rng)
        x = rng.normal(size=(TEST_ROWS + _MOST_ROWS, UNITS))
        level = 0.5 if self.threshold else rng.random(len(x))
        y = truth(x) > level
        last = TEST_ROWS + self.rows
        return self.made(
            x_train=x[TEST_ROWS:last],
            y_train=y[TEST_ROWS:last],
            x_test=x[:TEST_ROWS],
            y_test=y[:TEST_ROWS],
            x_label="3 features",
            y_label="class",
            class_names=("0", "1"),
            truth=truth,
        )


def _control(rows: int, threshold: bool) -> ControlSet:
    labels = "are the more probable class of" if threshold else "drawn from"
    return ControlSet(
        name=f"control_{rows}_threshold" if threshold else f"control_{rows}",
        title=f"Control, {rows:,} rows{', labels without noise' if threshold else ''}",
        doc=f"{rows:,} rows of three normal inputs, labels {labels} a known 3-3-1 tanh network with weights N(0, 2^2),"
        " which differs between splits; 400 test rows. The control set of the PMCnet paper; not standardised.",
        rows=rows,
        threshold=threshold,
    )


SETS = tuple(_control(rows, threshold) for threshold in (False, True) for rows in (50, 400, _MOST_ROWS))
