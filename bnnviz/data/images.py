"""Define an image data set: training and test images as bytes, and how a network sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bnnviz.data.dataset import PARTS, Evaluated, Part, Task
from bnnviz.errors import BnnvizError

_MOST_CLASSES = 1000
_LEVELS = np.arange(256) / 255.0


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageSet(Evaluated):
    """Labelled images, stored as bytes.

    Parameters
    ----------
    name, title, doc : str
        The registered name, the label in menus, and the tooltip.
    x_train, x_test : array_like of uint8, shape (rows, channels, height, width)
        Images. Training images are optional.
    y_train, y_test : array_like of int, shape (rows,)
        Class numbers, starting from 0, stored as int64.
    class_names : tuple of str
        Names of the classes.
    mean, sd : tuple of float or None, default None
        Mean and standard deviation of each channel after division by 255, which `scaled` uses. The default is computed
        from the training images, or from the test images if there are no training images.
    notes : tuple of str, default ()
        Notes for `remarks`, for example on an incomplete data set.
    stands_in : bool, default False
        Whether these rows replace a data set that could not be downloaded.
    task : {"classification"}
        Type of `y`.
    positive : int, default 1
        The positive class for precision, recall and specificity.

    Raises
    ------
    BnnvizError
        If images are not bytes of the same shape, or labels are not class numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import data
    >>> pictures = np.arange(256, dtype=np.uint8).reshape(4, 1, 8, 8)
    >>> labels = np.array([0, 1, 0, 1])
    >>> given = {"x_train": pictures, "y_train": labels, "x_test": pictures, "y_test": labels}
    >>> data.ImageSet(name="mine", title="Mine", doc="", class_names=("a", "b"), **given).class_names
    ('a', 'b')
    """

    name: str
    title: str
    doc: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    class_names: tuple[str, ...]
    mean: tuple[float, ...] | None = None
    sd: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()
    stands_in: bool = False
    task: Task = "classification"
    positive: int = 1

    def __post_init__(self) -> None:
        if not 2 <= self.classes <= _MOST_CLASSES:
            raise BnnvizError(
                f"The data set {self.name} has {self.classes} classes: give 2 to {_MOST_CLASSES}.", "data"
            )
        for part in ("train", "test"):
            x, y = self._checked(part)
            object.__setattr__(self, f"x_{part}", x)
            object.__setattr__(self, f"y_{part}", y)
        self._set_scale()

    def _checked(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        x, y = np.asarray(getattr(self, f"x_{part}")), np.asarray(getattr(self, f"y_{part}"))
        rows = f"The {part} rows of the data set {self.name}"
        if x.dtype != np.uint8 or x.ndim != 4 or 0 in x.shape[1:] or x.shape[1:] != np.shape(self.x_test)[1:]:
            raise BnnvizError(
                f"{rows} are not images of one shape (their shape is {x.shape}, their type {x.dtype}): give bytes of"
                " shape (rows, channels, height, width).",
                "data",
            )
        if y.shape != x.shape[:1] or (part == "test" and not len(x)):
            raise BnnvizError(f"{rows} are {len(x)} images and {y.size} labels: give a label for each.", "data")
        if y.dtype.kind not in "iu" or (y.size and not 0 <= int(y.min()) <= int(y.max()) < self.classes):
            raise BnnvizError(f"{rows} have labels that are not class numbers from 0 to {self.classes - 1}.", "data")
        return x, y.astype(np.int64)

    def _set_scale(self) -> None:
        if self.mean is None or self.sd is None:
            mean, sd = channel_moments(self.x_train if len(self.x_train) else self.x_test)
            object.__setattr__(self, "mean", mean)
            object.__setattr__(self, "sd", sd)
        if not len(self.mean) == len(self.sd) == self.shape[0] or min(self.sd) <= 0.0:
            raise BnnvizError(
                f"The data set {self.name} has {self.shape[0]} channels: give mean and positive sd of each.",
                "data",
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        return self.x_test.shape[1:]

    @property
    def inputs(self) -> tuple[int, int, int]:
        """The input shape of a network: `shape`."""
        return self.shape

    def scaled(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """Return standardised images and labels of a part of the data.

        Parameters
        ----------
        part : {"train", "test"}

        Returns
        -------
        x : ndarray of float32, shape (rows, channels, height, width)
            ``(bytes / 255 - mean) / sd`` for each channel.
        y : ndarray of int64, shape (rows,)
        """
        mean, sd = (np.array(numbers, np.float32)[:, None, None] for numbers in (self.mean, self.sd))
        x = getattr(self, f"x_{part}").astype(np.float32)
        x /= 255
        x -= mean
        x /= sd
        return x, getattr(self, f"y_{part}")

    def scaled_like(self, other: ImageSet) -> ImageSet:
        """Return a copy that is standardised like another data set.

        Parameters
        ----------
        other : ImageSet
            Data set that provides mean and standard deviation.

        Raises
        ------
        BnnvizError
            If the shapes of the images differ.
        """
        if other.shape != self.shape:
            raise BnnvizError(
                f"Images of {self.name} have the shape {self.shape} and those of {other.name} {other.shape}: choose"
                " sets of one shape.",
                "data",
            )
        return replace(self, mean=other.mean, sd=other.sd)

    def with_training(self, x: np.ndarray, y: np.ndarray) -> ImageSet:
        """Return a copy with different training rows and the same standardisation.

        Parameters
        ----------
        x : array_like of uint8, shape (rows, channels, height, width)
        y : array_like of int, shape (rows,)
        """
        return replace(self, x_train=x, y_train=y)

    def chosen(self, train: int | None = None, test: int | None = None, seed: int = 0) -> ImageSet:
        """Return a random subset.

        Parameters
        ----------
        train, test : int or None, default None
            Maximum numbers of training and test rows, or None for all. The subset is balanced over classes where
            possible and preserves the order of the rows. With the same seed, a smaller subset is contained in a larger
            one.
        seed : int, default 0
            Seed of the random number generator.

        Raises
        ------
        BnnvizError
            If a number is invalid, or no test rows would remain.
        """
        found = self
        if train is not None:
            rows = balanced_rows(self.y_train, _count("train", train), "train", seed)
            found = replace(found, x_train=self.x_train[rows], y_train=self.y_train[rows])
        if test is not None:
            if _count("test", test) == 0:
                raise BnnvizError(f"Keep at least one test row of {self.name}, not 0.", "test")
            rows = balanced_rows(self.y_test, test, "test", seed)
            found = replace(found, x_test=self.x_test[rows], y_test=self.y_test[rows])
        return found

    def rotated(self, degrees: float | np.ndarray) -> ImageSet:
        """Return a copy with rotated test images.

        Parameters
        ----------
        degrees : float or array_like of float, shape (test rows,)
            Counter-clockwise angle, for all images or for each image. Interpolation is bilinear, and pixels outside the
            image are black.
        """
        from scipy.ndimage import rotate

        angles = np.asarray(degrees, dtype=float)
        if angles.shape not in ((), self.y_test.shape) or not np.isfinite(angles).all():
            raise BnnvizError(
                f"Give {self.name} one finite angle in degrees, or one for each of its {len(self.y_test)} test rows.",
                "degrees",
            )
        turned = [
            rotate(image, angle, axes=(1, 2), reshape=False, order=1)
            for image, angle in zip(self.x_test, np.broadcast_to(angles, self.y_test.shape), strict=True)
        ]
        return replace(self, x_test=np.stack(turned))

    def remarks(self) -> list[str]:
        """Return `notes` and a note on classes without training rows."""
        return [*self.notes, *super().remarks()]


def channel_moments(images: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and sd of each channel of images (rows, channels, height, width), after division by 255."""
    mean, sd = [], []
    for channel in range(images.shape[1]):
        counts = np.bincount(images[:, channel].ravel(), minlength=256)
        mean.append(float(np.average(_LEVELS, weights=counts)))
        sd.append(float(np.sqrt(np.average((_LEVELS - mean[-1]) ** 2, weights=counts))))
    return tuple(mean), tuple(sd)


def balanced_rows(y: np.ndarray, rows: int, part: Part, seed: int = 0) -> np.ndarray:
    """Draw sorted row numbers of a part of the data, balanced over classes if possible."""
    rng = np.random.default_rng([seed, PARTS.index(part)])
    labels, counts = np.unique(y, return_counts=True)
    drawn = [
        rng.permutation(np.flatnonzero(y == label))[:share]
        for label, share in zip(labels, _shares(counts, rows), strict=True)
    ]
    return np.sort(np.concatenate(drawn)) if drawn else np.empty(0, np.int64)


def _count(field: str, rows: int) -> int:
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 0:
        raise BnnvizError(f"{field} is a number of rows, not {rows!r}: give an integer from 0.", field)
    return int(rows)


def _shares(counts: np.ndarray, rows: int) -> np.ndarray:
    """Divide a number of rows as equally as the class counts allow."""
    shares = np.zeros_like(counts)
    left = min(rows, int(counts.sum()))
    while left:
        open_classes = np.flatnonzero(shares < counts)
        more = left // len(open_classes)
        if more == 0:
            shares[open_classes[:left]] += 1
            break
        taken = np.minimum(more, (counts - shares)[open_classes])
        shares[open_classes] += taken
        left -= int(taken.sum())
    return shares
