"""Define the user's own table: typed columns, their encoder, and its bytes, which are attached to a spec."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import optional
from bnnviz.data.dataset import DataSet, Task
from bnnviz.data.splits import divided, split_rows
from bnnviz.data.tables.columns import CATEGORY
from bnnviz.data.tables.encoder import Encoder, framed
from bnnviz.data.tables.numerals import Decimal
from bnnviz.errors import BnnvizError
from bnnviz.files import plain_json

if TYPE_CHECKING:
    import pandas as pd

_WORDS = ("name", "sha256", "task", "target", "kinds", "decimal")
_LISTS = ("class_names", "notes", "missing")
_BROKEN = (ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError, OSError, zipfile.BadZipFile)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class UserTable:
    r"""Table from a file or a data frame, before splitting into training and test rows.

    Parameters
    ----------
    name : str
        Name of the file without its folder.
    sha256 : str
        SHA-256 checksum of the file.
    task : {"regression", "classification"}
    frame : DataFrame
        Inputs: numbers (nan if missing), dates as days since 1970, or text (None if missing).
    kinds : dict
        Type of each input: ``number``, ``date`` or ``category``.
    y : ndarray, shape (rows,)
        Target values, or class numbers starting from 0.
    target : str
        Name of the target column.
    class_names : tuple of str, default ()
        Names of the classes. Empty for regression.
    notes : tuple of str, default ()
        Notes on changes to the rows and columns of the file.
    decimal : str or None, default None
        Decimal mark of the numbers in the file.
    missing : tuple of str or None, default None
        Markers of missing values in addition to empty cells.

    Examples
    --------
    >>> from bnnviz import data
    >>> table = data.read_table(b"x,y\n1,2.5\n2,4.1\n3,6.2\n4,8.3\n5,9.9\n", "y")
    >>> data.UserTable.unpack(table.pack()).target
    'y'
    """

    name: str
    sha256: str
    task: Task
    frame: pd.DataFrame
    kinds: dict[str, str]
    y: np.ndarray
    target: str
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    decimal: Decimal | None = None
    missing: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        rows, inputs = self.frame.shape
        return f"<UserTable {self.name}: {rows:,} rows, {inputs} inputs, {self.task} of {self.target!r}>"

    @cached_property
    def encoder(self) -> Encoder:
        """The transformer that was fitted to these rows, which is also applied to new rows."""
        return Encoder(self.kinds).fit(self.frame)

    @cached_property
    def x(self) -> np.ndarray:
        """The encoded inputs, shape (rows, encoded columns)."""
        return self.encoder.transform(self.frame)

    @property
    def x_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return self.encoder.names

    def facts(self) -> dict[str, Any]:
        """Return the metadata of the file for a spec, as JSON."""
        return {
            "name": self.name,
            "sha256": self.sha256[:12],
            "rows": len(self.y),
            "inputs": len(self.x_names),
            "target": self.target,
            "task": self.task,
        }

    def load(self, split: int = 0) -> DataSet:
        """Return a split into 90% training rows and 10% test rows.

        Parameters
        ----------
        split : int, default 0
            Index of the split, from 0 to 19, generated like the published splits of the UCI data sets.
        """
        inputs = len(self.x_names)
        return DataSet(
            name=self.name,
            title=self.name,
            doc=" ".join(self.notes),
            task=self.task,
            **divided(self.x, self.y, **split_rows(len(self.x), split)),
            x_label=self.x_names[0] if inputs == 1 else f"{inputs} features",
            y_label=self.target,
            x_names=self.x_names,
            x_columns=self.encoder.columns,
            class_names=self.class_names,
        )

    def pack(self) -> bytes:
        """Serialise the table as a NumPy archive without pickles, for the attachment of a spec."""
        words = {name: getattr(self, name) for name in _WORDS} | {"facts": self.facts(), "levels": {}}
        words |= {name: None if (value := getattr(self, name)) is None else list(value) for name in _LISTS}
        columns = {}
        for i, (key, kind) in enumerate(self.kinds.items()):
            values = self.frame[key].to_numpy()
            if kind == CATEGORY:
                coded = optional.require("pandas", "Reading a table needs").Categorical(values)
                words["levels"][key], values = list(coded.categories), coded.codes.astype(np.int16)
            columns[f"column_{i}"] = values
        buffer = io.BytesIO()
        np.savez_compressed(buffer, y=self.y, words=np.array(json.dumps(words)), **columns)
        return buffer.getvalue()

    @classmethod
    def unpack(cls, attachment: bytes) -> UserTable:
        """Return the table from the attachment of a spec.

        Raises
        ------
        BnnvizError
            If the bytes are not a valid table.
        """
        try:
            with np.load(io.BytesIO(attachment), allow_pickle=False) as archive:
                words = plain_json(str(archive["words"]))
                y = np.asarray(archive["y"], dtype=float)
                columns = {
                    key: _unpacked(archive[f"column_{i}"], words["levels"].get(key))
                    for i, key in enumerate(words["kinds"])
                }
            lists = {name: None if words[name] is None else tuple(words[name]) for name in _LISTS}
            found = cls(frame=framed(columns), y=y, **{name: words[name] for name in _WORDS}, **lists)
            if any(len(values) != len(y) for values in columns.values()) or not np.isfinite(y).all():
                raise ValueError("its columns differ in length")
        except _BROKEN as error:
            raise BnnvizError("The attached table cannot be read; open the file again.", field="data") from error
        return found


def facts_of(attachment: bytes) -> dict[str, Any]:
    """Return `UserTable.facts` of a packed table without its rows."""
    try:
        with np.load(io.BytesIO(attachment), allow_pickle=False) as archive:
            return dict(plain_json(str(archive["words"]))["facts"])
    except _BROKEN as error:
        raise BnnvizError("The attached table cannot be read; open the file again.", field="data") from error


def _unpacked(values: np.ndarray, levels: list[str] | None) -> np.ndarray:
    if levels is None:
        return np.asarray(values, dtype=float)
    return np.array([*levels, None], dtype=object)[values]
