"""Find data sets by name: every module of `bnnviz.data.sets` lists its own in ``SETS``."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bnnviz.data import files, sets
from bnnviz.data.dataset import DataSet
from bnnviz.data.entry import KINDS, DataEntry, Kind
from bnnviz.data.images import ImageSet
from bnnviz.data.published import PublishedWeights
from bnnviz.data.tables.user_table import UserTable
from bnnviz.errors import BnnvizError, none_of

_entries: dict[str, DataEntry] = {}


def register(entry: DataEntry) -> None:
    """Register a data set. The name must be unique.

    Examples
    --------
    >>> from bnnviz import data
    >>> from bnnviz.data.sets import toys
    >>> try:
    ...     data.register(toys.SETS[0])
    ... except ValueError:
    ...     print("this name is taken")
    this name is taken
    """
    if entry.name in _entries:
        raise BnnvizError(f"A data set {entry.name!r} is registered already: choose another name.", field="data")
    _entries[entry.name] = entry


def names(kind: Kind | None = None) -> list[str]:
    """Return the names of all data sets, or of all data sets of a type ("table" or "images").

    Examples
    --------
    >>> from bnnviz import data
    >>> "mnist" in data.names("images")
    True
    """
    if kind is not None and kind not in KINDS:
        raise BnnvizError(f"There are no data sets of kind {kind!r}: choose one of {', '.join(KINDS)}.", field="kind")
    return [name for name, entry in _entries.items() if kind in (None, entry.kind)]


def describe(name: str) -> dict[str, Any]:
    """Return the metadata of a data set as JSON, without downloading it (see `DataEntry.describe`).

    Examples
    --------
    >>> from bnnviz import data
    >>> data.describe("concrete")["rows"]
    1030
    """
    return _entry(name).describe()


def load(name: str, split: int = 0, attachment: bytes | None = None) -> DataSet | ImageSet:
    """Load a split of a data set, downloading it on first use.

    Parameters
    ----------
    name : str
        A registered name.
    split : int, default 0
        Index of the split into training and test rows.
    attachment : bytes or None, default None
        A packed `UserTable`, for the data set of an uploaded file.

    Returns
    -------
    DataSet or ImageSet
        The data set in original units. Use ``.scaled(part)`` to standardise it for a network.

    Raises
    ------
    BnnvizError
        If the name or the split does not exist, or a file is not available.

    Examples
    --------
    >>> from bnnviz import data
    >>> concrete = data.load("concrete", split=1)
    >>> len(concrete.x_train) + len(concrete.x_test)
    1030
    """
    entry = _entry(name)
    if isinstance(split, bool) or not isinstance(split, int) or not 0 <= split < entry.splits:
        allowed = f"an integer from 0 to {entry.splits - 1}" if entry.splits > 1 else "0, its only one"
        raise BnnvizError(f"The data set {name} has no split {split!r}: give {allowed}.", field="split")
    if attachment is None:
        return entry.load(split)
    if not entry.attached:
        raise BnnvizError(f"The data set {name} has its own rows: leave out the attachment.", field="data")
    return UserTable.unpack(attachment).load(split)


def fetch(name: str) -> list[Path]:
    """Download the files of a data set if necessary and return their paths.

    Returns
    -------
    list of Path
        Paths in the folder BNNVIZ_DATA if it is set, otherwise in the cache.

    Raises
    ------
    BnnvizError
        If the data set is generated and has no files, or a file is not available.

    Examples
    --------
    >>> from bnnviz import data
    >>> all(path.exists() for path in data.fetch("concrete"))
    True
    """
    sources = _entry(name).sources()
    if not sources:
        raise BnnvizError(
            f"The data set {name} is generated and has no file: load it, nothing needs fetching.",
            field="data",
        )
    return [files.fetch(file) for file in sources]


def is_here(name: str) -> bool:
    """Return whether a data set can be loaded without a download. Files are not validated.

    Examples
    --------
    >>> from bnnviz import data
    >>> data.is_here("concrete")
    True
    """
    return _entry(name).is_here()


def remark(name: str) -> str:
    """Return a note on the local files of a data set, for example if they are incomplete.

    Examples
    --------
    >>> from bnnviz import data
    >>> data.remark("toy_a")
    ''
    """
    return _entry(name).remark()


def published_weights(name: str) -> tuple[PublishedWeights, np.ndarray]:
    """Return published weights of a network for a data set.

    Parameters
    ----------
    name : str
        A registered name.

    Returns
    -------
    network : PublishedWeights
        Description of the network.
    theta : ndarray, shape (dim,)
        The weights in the order of the parameters of `bnnviz.models.mlp`: for each layer first the weights (outputs,
        inputs), then the biases.

    Raises
    ------
    BnnvizError
        If the data set has no published weights, or the files are not available.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import data
    >>> try:
    ...     data.published_weights("concrete")
    ... except bnnviz.BnnvizError as error:
    ...     print(error.field)
    data
    """
    found = _entry(name).weights
    if found is None:
        named = ", ".join(each.name for each in _entries.values() if each.weights is not None)
        raise BnnvizError(f"The data set {name} has no published weights; choose one of {named}.", "data")
    return found, found.read()


def _entry(name: str) -> DataEntry:
    if not isinstance(name, str) or name not in _entries:
        if isinstance(name, str) and Path(name).suffix:
            remedy = f"read a file by bnnviz.data.read_table({name!r}, target_column)"
            raise BnnvizError(f"There is no data set {name!r}; {remedy}.", "data")
        error = none_of("data set", name, _entries)
        error.field = "data"
        raise error
    return _entries[name]


_modules = [import_module(module.name) for module in pkgutil.iter_modules(sets.__path__, f"{sets.__name__}.")]
# Tables first: a menu of all sets begins with those that need no file.
_listed = [entry for module in _modules for entry in module.SETS]
for _each in sorted(_listed, key=lambda entry: KINDS.index(entry.kind)):
    register(_each)
