"""List tables to predict: shipped ones, those that scikit-learn brings along, and made-up ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn import datasets as bundled
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from bnnviz import data
from bnnviz.data.dataset import Task

SPLITS = 5
_TEST_SHARE = 0.2
_DIGITS = 600  # rows of the digits that are taken


class Table(NamedTuple):
    """Rows to predict: inputs (rows, inputs), and numbers or class numbers (rows,)."""

    task: Task
    x: np.ndarray
    y: np.ndarray

    def split(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the training and of the test rows of a split, each class in both."""
        kind = StratifiedShuffleSplit if self.task == "classification" else ShuffleSplit
        splits = kind(n_splits=SPLITS, test_size=_TEST_SHARE, random_state=0).split(self.x, self.y)
        return list(splits)[number]


def _shipped(name: str) -> Table:
    """Return all rows of a shipped set."""
    found = data.load(name)
    parts = [(found.x_train, found.y_train), (found.x_test, found.y_test)]
    parts += [(found.x_val, found.y_val)] if found.x_val is not None and len(found.x_val) else []
    x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Table(found.task, x, y)


def _bundled(load: Callable, task: Task, rows: int | None = None) -> Table:
    x, y = load(return_X_y=True)
    return Table(task, x[:rows], y[:rows])


def _made(task: Task, made: tuple[np.ndarray, np.ndarray]) -> Table:
    return Table(task, *made)


#: How to get at each table, by name.
TABLES: dict[str, Callable[[], Table]] = {
    "boston": lambda: _shipped("boston"),
    "concrete": lambda: _shipped("concrete"),
    "energy": lambda: _shipped("energy"),
    "yacht": lambda: _shipped("yacht"),
    "diabetes": lambda: _bundled(bundled.load_diabetes, "regression"),
    "friedman1": lambda: _made("regression", bundled.make_friedman1(400, 10, noise=1.0, random_state=0)),
    "friedman2": lambda: _made("regression", bundled.make_friedman2(400, noise=50.0, random_state=0)),
    "linear": lambda: _made(
        "regression", bundled.make_regression(300, 15, n_informative=5, noise=20.0, random_state=0)
    ),
    "breast_cancer": lambda: _bundled(bundled.load_breast_cancer, "classification"),
    "wine": lambda: _bundled(bundled.load_wine, "classification"),
    "iris": lambda: _bundled(bundled.load_iris, "classification"),
    "digits": lambda: _bundled(bundled.load_digits, "classification", _DIGITS),
    "ionosphere": lambda: _shipped("pmcnet_ionosphere"),
    "moons": lambda: _made("classification", bundled.make_moons(400, noise=0.25, random_state=0)),
}
