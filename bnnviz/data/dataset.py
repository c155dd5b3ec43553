"""Define a data set: training and test rows in original units, and their standardisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from bnnviz.errors import BnnvizError

Task = Literal["regression", "classification"]
Part = Literal["train", "val", "test"]
PARTS = get_args(Part)
_MOST_CLASSES = 1000


_LARGEST = 1e100  # by which numbers of a column may differ: squares of more overflow
_ROUNDING = 1e-13  # of the largest number of a column: differences that sums and units leave behind


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Affine map between original units and the scale of a network.

    Parameters
    ----------
    x_mean, x_scale : ndarray, shape (inputs,)
        Location and scale of each input.
    y_mean, y_scale : float or ndarray, shape (outputs,)
        Location and scale of the target. Multiply a standard deviation by `y_scale` to convert it to the original unit.

    Examples
    --------
    >>> from bnnviz import data
    >>> scale = data.load("concrete").standardiser
    >>> len(scale.x_mean), scale.y_scale > 1
    (8, True)
    """

    x_mean: np.ndarray
    x_scale: np.ndarray
    y_mean: float | np.ndarray
    y_scale: float | np.ndarray

    @classmethod
    def fit(cls, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> Standardiser:
        """Fit a standardisation to mean 0 and standard deviation 1.

        Parameters
        ----------
        x : ndarray, shape (rows, inputs)
        y : ndarray, shape (rows,) or (rows, outputs)
        weights : ndarray, shape (rows,), optional
            Weight of each row in the mean and the standard deviation.

        Returns
        -------
        Standardiser
            Columns that are constant up to rounding errors are centred but not scaled.

        Raises
        ------
        BnnvizError
            If the squares of a column overflow or underflow.
        """
        (x_mean, x_scale), (y_mean, y_scale) = _location(x, "inputs", weights), _location(y, "observations", weights)
        return cls(x_mean, x_scale, *((float(y_mean), float(y_scale)) if y.ndim == 1 else (y_mean, y_scale)))

    @classmethod
    def identity(cls, inputs: int) -> Standardiser:
        """Return the identity map.

        Parameters
        ----------
        inputs : int
            Number of input columns.
        """
        return cls(np.zeros(inputs), np.ones(inputs), 0.0, 1.0)

    def x(self, x: np.ndarray) -> np.ndarray:
        """Scale inputs of shape (..., inputs) for the network."""
        return (x - self.x_mean) / self.x_scale

    def y(self, y: np.ndarray) -> np.ndarray:
        """Scale targets of any shape for the network."""
        return (y - self.y_mean) / self.y_scale

    def y_back(self, z: np.ndarray) -> np.ndarray:
        """Convert outputs of any shape to the original unit of the target."""
        return z * self.y_scale + self.y_mean


def _location(
    columns: np.ndarray, what: str = "inputs", weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of columns."""
    # Constant columns are detected by their range: rounding gives them a tiny standard deviation.
    spread = np.ptp(columns, axis=0)
    constant = spread <= _ROUNDING * np.abs(columns).max(axis=0)
    wrong = ~constant & ((spread < 1 / _LARGEST) | (spread > _LARGEST))
    if wrong.any():
        first = np.flatnonzero(wrong)[0]
        column = f"Column {first + 1} of the {what}" if columns.ndim > 1 else f"Numbers of the {what}"
        verb = "differs" if columns.ndim > 1 else "differ"
        raise BnnvizError(f"{column} {verb} by {spread.ravel()[first]:.2g}; give them in another unit.", "data")
    mean = np.average(columns, axis=0, weights=weights)
    return mean, np.where(constant, 1.0, np.sqrt(np.average(np.square(columns - mean), axis=0, weights=weights)))


class Evaluated:
    """Shared properties of tables and images."""

    @property
    def classes(self) -> int:
        """Number of classes, or 0 for regression."""
        return len(self.class_names)

    def remarks(self) -> list[str]:
        """Return a remark on classes without training rows, if there are such classes."""
        missing = [self.class_names[i] for i in np.setdiff1d(np.arange(self.classes), self.y_train)]
        if not missing or not len(self.y_train):
            return []
        return [
            f"No training row of {self.name} is of class {' or '.join(missing)}: its predictions come from the prior"
            " alone."
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSet(Evaluated):
    """One split of a data set, in original units.

    Parameters
    ----------
    name, title, doc : str
        The registered name, the label in menus, and the tooltip.
    task : {"regression", "classification"}
        Type of `y`: numbers, or class numbers starting from 0.
    x_train, x_test : array_like, shape (rows, inputs)
        Inputs, stored as float64.
    y_train, y_test : array_like, shape (rows,), or for a regression (rows, outputs)
        Targets, stored as float64.
    x_val, y_val : array_like or None, default None
        Validation rows, which are used neither for training nor for testing.
    x_label, y_label : str
        Axis labels of inputs and target.
    x_names : tuple of str
        Names of the input columns. The default is x1, x2, ...
    x_columns : tuple of str
        The table's column that each input encodes, such as a level of a category. The default is `x_names`.
    class_names : tuple of str
        Names of the classes. The default is their numbers. Empty for regression.
    y_unit : str, default ""
        Unit of the target.
    test_interval : (float, float) or None, default None
        Interval for plots of predictions with one input, in the units of `x_train`.
    test_box : ((float, float), (float, float)) or None, default None
        Intervals for plots of predictions with two inputs.
    truth : callable or None, default None
        The true function without noise, or for two classes the true probability of class 1. It maps inputs (rows,
        inputs) to values (rows,).
    standardise : bool, default True
        Whether to standardise the columns for a network.
    scale : Standardiser or None, default None
        The standardisation, if it is not fitted to the training rows. Required without training rows.
    own_scales : bool, default False
        Whether validation and test inputs are standardised by their own statistics instead of those of the training
        rows.
    positive : int, default 1
        The positive class for precision, recall and specificity.
    noise_sd : float or None, default None
        Default standard deviation of the observation noise on the standardised scale.

    Examples
    --------
    >>> from bnnviz import data
    >>> toy = data.load("toy_c")
    >>> toy.task, toy.x_train.shape[1]
    ('regression', 1)
    """

    name: str
    title: str
    doc: str
    task: Task
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    x_val: np.ndarray | None = None
    y_val: np.ndarray | None = None
    x_label: str = "x"
    y_label: str = "y"
    x_names: tuple[str, ...] = ()
    x_columns: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    y_unit: str = ""
    test_interval: tuple[float, float] | None = None
    test_box: tuple[tuple[float, float], tuple[float, float]] | None = None
    truth: Callable[[np.ndarray], np.ndarray] | None = None
    standardise: bool = True
    scale: Standardiser | None = None
    own_scales: bool = False
    positive: int = 1
    noise_sd: float | None = None

    def __post_init__(self) -> None:
        may_be_empty = {"train": self.scale is not None, "test": False, "val": True}
        for part in PARTS:
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            if part == "val" and x is None and y is None:
                x, y = np.empty((0, self.inputs)), np.empty((0, *np.shape(self.y_train)[1:]))
            x, y = _checked(self.name, part, x, y, may_be_empty[part], 1 if self.task == "classification" else 2)
            object.__setattr__(self, f"x_{part}", x)
            object.__setattr__(self, f"y_{part}", y)
            if x.shape[1] != self.inputs:
                raise BnnvizError(
                    f"The data set {self.name} has {self.inputs} input columns for training and {x.shape[1]} for the"
                    f" {'test' if part == 'test' else 'validation'}: give both the same columns.",
                    field="data",
                )
        if not self.x_names:
            names = tuple(f"x{i + 1}" for i in range(self.inputs)) if self.inputs > 1 else (self.x_label,)
            object.__setattr__(self, "x_names", names)
        if not self.x_columns:
            object.__setattr__(self, "x_columns", self.x_names)
        if self.task == "classification":
            self._name_classes()

    def _name_classes(self) -> None:
        labels = np.unique(np.concatenate([self.y_train, self.y_val, self.y_test]))
        count = len(self.class_names) or int(min(labels.max(), _MOST_CLASSES)) + 1
        if not self.class_names:
            object.__setattr__(self, "class_names", tuple(str(i) for i in range(count)))
        if len(labels) == 1 and not self.class_names[1:]:
            raise BnnvizError(
                f"All rows of the data set {self.name} are of one class: add rows of another class, or name the"
                " classes.",
                field="data",
            )
        if not 2 <= count <= _MOST_CLASSES or not np.isin(labels, np.arange(count)).all():
            raise BnnvizError(
                f"The labels of the data set {self.name} are not class numbers: count 2 to"
                f" {_MOST_CLASSES} classes from 0.",
                field="data",
            )

    @property
    def inputs(self) -> int:
        """Number of input columns."""
        return self.x_train.shape[1]

    @cached_property
    def standardiser(self) -> Standardiser:
        """The map to the network's scale: `scale`, or fitted on the training rows, or none (see `standardise`)."""
        if self.scale is not None:
            return self.scale
        if not self.standardise:
            return Standardiser.identity(self.inputs)
        fitted = Standardiser.fit(self.x_train, self.y_train)
        # Class numbers are labels: they have no scale.
        return fitted if self.task == "regression" else replace(fitted, y_mean=0.0, y_scale=1.0)

    def scaler(self, part: Part) -> Standardiser:
        """Return the standardisation of a part of the data.

        Parameters
        ----------
        part : {"train", "val", "test"}

        Returns
        -------
        Standardiser
            The standardisation. With `own_scales` it uses the inputs of this part.
        """
        known = self.standardiser
        if part == "train" or not (self.own_scales and self.standardise):
            return known
        mean, scale = _location(getattr(self, f"x_{part}"))
        return replace(known, x_mean=mean, x_scale=scale)

    def scaled(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """Return standardised inputs (rows, inputs) and targets (rows,) of a part of the data.

        Parameters
        ----------
        part : {"train", "val", "test"}
        """
        x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
        if not len(x):
            return x, y
        scale = self.scaler(part)
        return scale.x(x), scale.y(y)

    def for_validation(self) -> DataSet:
        """Return a copy in which the validation rows replace the test rows.

        Raises
        ------
        BnnvizError
            If there are no validation rows.
        """
        if not len(self.x_val):
            raise BnnvizError(f"The data set {self.name} has no validation rows: choose another one.", "data")
        return replace(self, x_test=self.x_val, y_test=self.y_val, x_val=None, y_val=None)

    def with_training(self, x: np.ndarray, y: np.ndarray) -> DataSet:
        """Return a copy with different training rows and the same standardisation.

        Parameters
        ----------
        x : array_like, shape (rows, inputs)
        y : array_like, shape (rows,) or (rows, outputs)
        """
        return replace(self, x_train=x, y_train=y, scale=self.standardiser)


def _checked(
    name: str, part: str, x: np.ndarray, y: np.ndarray, may_be_empty: bool, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and targets as arrays; the targets have at most ``most`` axes."""
    try:
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BnnvizError(
            f"The {part} rows of the data set {name} are not plain tables of numbers: give numeric arrays.",
            field="data",
        ) from error
    if (
        x.ndim != 2
        or y.shape[:1] != x.shape[:1]
        or y.ndim > most
        or y.shape[1:] == (1,)
        or x.shape[1] == 0
        or (len(x) == 0 and not may_be_empty)
    ):
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
