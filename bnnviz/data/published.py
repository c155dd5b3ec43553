"""Read published weights of networks, some of which are in MATLAB files."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bnnviz.data.files import DataFile, fetch
from bnnviz.data.formats import reading


@dataclass(frozen=True)
class PublishedWeights:
    """Published weights of a multilayer perceptron in MATLAB files.

    Parameters
    ----------
    hidden : str
        Widths of the hidden layers in the format of `bnnviz.models.parse_hidden`.
    activation : str
        Activation of the hidden layers.
    files : tuple of (DataFile, DataFile)
        Weights, stored (inputs, outputs), and biases of each layer, from input to output.

    Examples
    --------
    >>> from bnnviz import data
    >>> data.PublishedWeights("10", "tanh", ()).hidden
    '10'
    """

    hidden: str
    activation: str
    files: tuple[tuple[DataFile, DataFile], ...]

    def read(self) -> np.ndarray:
        """Return the weights (dim,) in the order of `bnnviz.models.mlp`. Files are downloaded if necessary."""
        held = [next(iter(read_mat(file).values())) for layer in self.files for file in layer]
        return np.concatenate([numbers.T.ravel() for numbers in held])


def read_mat(file: DataFile) -> dict[str, np.ndarray]:
    """Return the arrays of a MATLAB file by name, as float64, downloading it if needed."""
    found = mat_arrays(fetch(file))
    return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}


def mat_arrays(place: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a MATLAB file by name, as they are."""
    from scipy.io import loadmat

    with reading(place, "MATLAB file"), (gzip.open if place.suffix == ".gz" else open)(place, "rb") as stream:
        return {name: value for name, value in loadmat(stream).items() if not name.startswith("__")}
