"""Encode the columns of a table as numbers: one fitted transformer of scikit-learn for training rows and new ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bnnviz import optional
from bnnviz.data.tables.columns import CATEGORY, listed, present_in
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

_NO_VALUE = "(missing)"  # the level of a category's missing cells
_SHOWN = 40  # characters of a text in a note
_DONORS = 1000  # maximum training rows whose values replace cells that no training row lacks
_VERSIONS = (10, 50)  # fewest for many rows, and most
_MOST_NUMBERS = 5_000_000  # of all versions, if the fewest do not exceed it


class Imputed(NamedTuple):
    """Rows with several values for unknown cells: predictions average over ``versions`` (versions, rows, inputs)."""

    versions: np.ndarray


class Encoder:
    """One-hot encode categories, and fill gaps in numbers by the median with an indicator of the gaps."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = dict(kinds)
        self._categories = [key for key, kind in kinds.items() if kind == CATEGORY]
        self._numbers = [key for key in kinds if key not in self._categories]

    def fit(self, frame: pd.DataFrame) -> Self:
        """Learn levels and medians from training rows."""
        optional.require("sklearn", "Reading a table needs")
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        fill = SimpleImputer(missing_values=None, strategy="constant", fill_value=_NO_VALUE)
        one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        self.transformer = ColumnTransformer(
            [
                ("number", SimpleImputer(strategy="median", add_indicator=True), self._numbers),
                ("category", make_pipeline(fill, one_hot), self._categories),
            ]
        ).fit(frame)
        gaps, found = [], []
        if self._numbers:
            indicator = self.transformer.named_transformers_["number"].indicator_
            gaps = [self._numbers[i] for i in indicator.features_]
        if self._categories:
            found = self.transformer.named_transformers_["category"][-1].categories_
        self._marked = set(gaps)
        self._donors = frame.sample(min(len(frame), _DONORS), random_state=0).reset_index(drop=True)
        known = {key: tuple(map(str, each)) for key, each in zip(self._categories, found, strict=True)}
        self.levels = {key: known.get(key, ()) for key in self.kinds}
        encoded = [f"{key}={level}" for key, each in known.items() for level in each]
        self.names = (*self._numbers, *(f"{key} is missing" for key in gaps), *encoded)
        #: The column of each encoded column.
        self.columns = (*self._numbers, *gaps, *(key for key, each in known.items() for _ in each))
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise BnnvizError(f"Two encoded columns are called {twice}; rename the column of that name.", "data")
        return self

    def fit_transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Fit to training rows and return them encoded."""
        return self.fit(frame).transform(frame)

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Return rows (rows, encoded columns) as finite numbers."""
        return np.asarray(self.transformer.transform(frame), dtype=float)

    def encode(self, frame: pd.DataFrame, misfits: Mapping[str, Any]) -> tuple[np.ndarray | Imputed, np.ndarray]:
        """Return new rows encoded, and a note on the filled, unknown and unfit values of each, or an empty text.

        A missing or unknown value that no training row has is replaced by those of random training rows, because the
        network has learned nothing about such rows.
        """
        notes = np.full(len(frame), "", dtype=object)
        unknown = {}
        for key, levels in self.levels.items():
            values = frame[key].to_numpy()
            present = present_in(values)
            strange = np.zeros(len(values), dtype=bool)
            if levels:
                for value in set(values[present].tolist()) - set(levels):
                    strange |= values == value
                    _add_note(notes, values == value, f"{key} has the unknown value {value[:_SHOWN]!r}")
            if not levels or _NO_VALUE not in levels:
                blank = ~present
                for row, value in misfits.get(key, {}).items():
                    blank[row] = False
                    _add_note(notes, [row], f"{key} is {value!r:.40}, which is not a number")
                _add_note(notes, blank, f"{key} is missing")
                strange |= ~present & (key not in self._marked)
            if strange.any():
                unknown[key] = strange
        encoded = self.transform(frame)
        if not unknown:
            return encoded, notes
        count = int(np.clip(_MOST_NUMBERS // encoded.size, *_VERSIONS))
        rng, versions = np.random.default_rng(0), np.repeat(encoded[None], count, axis=0)
        rows = np.flatnonzero(np.any(list(unknown.values()), axis=0))
        for version in versions:
            filled = frame.iloc[rows].reset_index(drop=True)
            donors = self._donors.iloc[rng.integers(len(self._donors), size=len(rows))].reset_index(drop=True)
            for key, strange in unknown.items():
                filled[key] = filled[key].mask(strange[rows], donors[key])
            version[rows] = self.transform(filled)
        return Imputed(versions), notes

    def describe_categories(self) -> list[str]:
        """Return a note on the categories, if there are any."""
        found = [f"{key} ({len(self.levels[key])} levels)" for key in self._categories]
        return [f"Texts are one-hot encoded: {listed(found)}."] if found else []


def framed(columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Return columns as a frame that keeps None in texts."""
    pandas = optional.require("pandas", "Reading a table needs")
    return pandas.DataFrame({key: pandas.Series(values, dtype=values.dtype) for key, values in columns.items()})


def _add_note(notes: np.ndarray, rows: np.ndarray | list[int], note: str) -> None:
    """Add a note to those of some rows."""
    notes[rows] = [f"{other}; {note}" if other else note for other in notes[rows]]
