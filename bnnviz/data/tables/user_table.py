"""Pack a table of the user's own: rows, names and labels, as bytes that travel with a spec."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bnnviz.data.dataset import DataSet, Task
from bnnviz.data.splits import divided, split_rows
from bnnviz.errors import BnnvizError
from bnnviz.files import plain_json

_ARRAYS = ("x", "y")
_WORDS = ("name", "sha256", "task", "target", "levels", "decimal", "missing")


@dataclass(frozen=True, eq=False, kw_only=True)
class UserTable:
    r"""Rows read from a file of the user's, not yet divided into training and test rows.

    Parameters
    ----------
    name : str
        The file's name, without its folder.
    sha256 : str
        The checksum of the file's bytes, in hexadecimal.
    task : {"regression", "classification"}
    x : ndarray, shape (rows, inputs)
    y : ndarray, shape (rows,)
        Numbers, or class numbers from 0.
    x_names : tuple of str
        What each input column is called.
    target : str
        The target's column.
    class_names : tuple of str, default ()
        What each class is called; empty for regression.
    notes : tuple of str, default ()
        What was done to the rows and columns of the file, one sentence each.
    levels : dict or None, default None
        The columns of the file that are inputs, in order, each with its different texts, or () where it holds numbers;
        None if not known.
    decimal : str or None, default None
        The mark before the decimals of its numbers, where they show one.
    missing : tuple of str or None, default None
        What was said to stand for a missing value.

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
    x: np.ndarray
    y: np.ndarray
    x_names: tuple[str, ...]
    target: str
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    levels: dict[str, tuple[str, ...]] | None = None
    decimal: Literal[".", ","] | None = None
    missing: tuple[str, ...] | None = None

    def facts(self) -> dict[str, Any]:
        """Return what a spec says of the file, as plain JSON values."""
        return {
            "name": self.name,
            "sha256": self.sha256[:12],
            "rows": len(self.x),
            "inputs": self.x.shape[1],
            "target": self.target,
            "task": self.task,
        }

    def load(self, split: int = 0) -> DataSet:
        """Return one division into training rows and a tenth of test rows.

        Parameters
        ----------
        split : int, default 0
            Which one, from 0 to 19, by the rule of the published splits of the UCI sets.
        """
        inputs = self.x.shape[1]
        return DataSet(
            name=self.name,
            title=self.name,
            doc=" ".join(self.notes),
            task=self.task,
            **divided(self.x, self.y, **split_rows(len(self.x), split)._asdict()),
            x_label=self.x_names[0] if inputs == 1 else f"{inputs} features",
            y_label=self.target,
            x_names=self.x_names,
            class_names=self.class_names,
        )

    def pack(self) -> bytes:
        """Return the table as the bytes of a NumPy archive without pickles, for a spec's attachment."""
        words = {name: getattr(self, name) for name in _WORDS}
        lists = {name: list(getattr(self, name)) for name in ("x_names", "class_names", "notes")}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, x=self.x, y=self.y, words=np.array(json.dumps(words | lists)))
        return buffer.getvalue()

    @classmethod
    def unpack(cls, attachment: bytes) -> UserTable:
        """Return the table of a spec's attachment.

        Raises
        ------
        BnnvizError
            If the bytes are no such table.
        """
        try:
            with np.load(io.BytesIO(attachment), allow_pickle=False) as archive:
                arrays = {name: np.asarray(archive[name], dtype=float) for name in _ARRAYS}
                words = plain_json(str(archive["words"]))
            lists = {name: tuple(words.pop(name)) for name in ("x_names", "class_names", "notes")}
            levels, missing = words.pop("levels", None), words.pop("missing", None)
            lists["levels"] = None if levels is None else {key: tuple(each) for key, each in levels.items()}
            lists["missing"] = None if missing is None else tuple(missing)
            return cls(**arrays, **words, **lists)
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, zipfile.BadZipFile) as error:
            raise BnnvizError("The attached table cannot be read: open the file again.", field="data") from error
