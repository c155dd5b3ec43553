"""What a data set is: training and test rows in original units, and their standardisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from bnnviz.errors import BnnvizError

Task = Literal["regression", "classification"]


@dataclass(frozen=True, eq=False)
class Standardiser:
    """The affine map between original units and the scale that a network sees.

    Parameters
    ----------
    x_mean, x_scale : ndarray, shape (inputs,)
        Subtracted from each input, then divided by.
    y_mean, y_scale : float
        The same for the target. Multiply a standard deviation by `y_scale` (not `y_back`) to bring
        it back to the original unit.
    """

    x_mean: np.ndarray
    x_scale: np.ndarray
    y_mean: float
    y_scale: float

    @classmethod
    def fit(cls, x: np.ndarray, y: np.ndarray) -> Standardiser:
        """Fit to mean 0 and standard deviation 1; pass training rows only.

        Parameters
        ----------
        x : ndarray, shape (rows, inputs)
        y : ndarray, shape (rows,)

        Returns
        -------
        Standardiser
            A column that is constant in these rows is centred but keeps its scale.
        """
        return cls(x.mean(axis=0), _scale(x), float(y.mean()), float(_scale(y)))

    @classmethod
    def identity(cls, inputs: int) -> Standardiser:
        """Leave everything in original units.

        Parameters
        ----------
        inputs : int
            Number of input columns.
        """
        return cls(np.zeros(inputs), np.ones(inputs), 0.0, 1.0)

    def x(self, x: np.ndarray) -> np.ndarray:
        """Bring inputs of shape (..., inputs) to the network's scale."""
        return (x - self.x_mean) / self.x_scale

    def y(self, y: np.ndarray) -> np.ndarray:
        """Bring targets of any shape to the network's scale."""
        return (y - self.y_mean) / self.y_scale

    def y_back(self, z: np.ndarray) -> np.ndarray:
        """Bring outputs of any shape back to the target's original unit."""
        return z * self.y_scale + self.y_mean


def _scale(columns: np.ndarray) -> np.ndarray:
    # The range decides what is constant: rounding gives a constant column a tiny standard deviation.
    constant = np.ptp(columns, axis=0) == 0
    return np.where(constant, 1.0, columns.std(axis=0))


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSet:
    """One split of a data set, in original units.

    Parameters
    ----------
    name, title, doc : str
        The registered name, what a menu shows, and what a tooltip explains.
    task : {"regression", "classification"}
        What `y` holds: numbers, or class labels counted from 0.
    x_train, x_test : array_like, shape (rows, inputs)
        Inputs; kept as float64.
    y_train, y_test : array_like, shape (rows,)
        Targets; kept as float64.
    x_label, y_label : str
        What inputs and target are called on an axis.
    y_unit : str, default ""
        The target's unit, empty where it has none.
    test_interval : (float, float) or None, default None
        Where to show the predictions of a one-dimensional set, in the coordinates of `x_train`.
    truth : callable or None, default None
        The function without noise, ``truth(x of shape (rows, inputs)) -> (rows,)``, where known.
    standardise : bool, default True
        Whether a network should see the standardised columns. The toys say no: they are made on
        the scale that the papers' networks see.
    """

    name: str
    title: str
    doc: str
    task: Task
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    x_label: str = "x"
    y_label: str = "y"
    y_unit: str = ""
    test_interval: tuple[float, float] | None = None
    truth: Callable[[np.ndarray], np.ndarray] | None = None
    standardise: bool = True

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            x, y = _checked(self.name, part, getattr(self, f"x_{part}"), getattr(self, f"y_{part}"))
            object.__setattr__(self, f"x_{part}", x)
            object.__setattr__(self, f"y_{part}", y)
        if self.x_train.shape[1] != self.x_test.shape[1]:
            raise BnnvizError(
                f"The data set {self.name} has {self.x_train.shape[1]} input columns for training and"
                f" {self.x_test.shape[1]} for the test: give both the same columns.",
                field="data",
            )

    @property
    def inputs(self) -> int:
        """Number of input columns."""
        return self.x_train.shape[1]

    @cached_property
    def standardiser(self) -> Standardiser:
        """The map to the network's scale, fitted on the training rows (or none, see `standardise`)."""
        if not self.standardise:
            return Standardiser.identity(self.inputs)
        return Standardiser.fit(self.x_train, self.y_train)


def _checked(name: str, part: str, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    try:
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BnnvizError(
            f"The {part} rows of the data set {name} are no plain tables of numbers: give numeric arrays.",
            field="data",
        ) from error
    if x.ndim != 2 or y.shape != x.shape[:1] or x.size == 0:
        raise BnnvizError(
            f"The {part} rows of the data set {name} have the shapes {x.shape} and {y.shape}: give x as"
            " (rows, inputs) and y as (rows,), with at least one row and one input.",
            field="data",
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise BnnvizError(
            f"The {part} rows of the data set {name} hold a missing or infinite number: remove those rows.",
            field="data",
        )
    return x, y
