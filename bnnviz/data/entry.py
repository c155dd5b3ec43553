"""What the registry knows of a data set before anything is generated or downloaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from bnnviz.data.dataset import DataSet, Task
from bnnviz.data.files import DataFile
from bnnviz.data.published import PublishedWeights


@dataclass(frozen=True, kw_only=True)
class Entry(ABC):
    """One data set of the registry; a family of sets is a subclass.

    Parameters
    ----------
    name : str
        Unique; what a spec holds.
    title, doc : str
        What a menu shows, and what a tooltip explains.
    inputs : int
        Number of input columns.
    rows : int
        Number of rows: of the whole file, or of the training part of a generated set.
    task : {"regression", "classification"} or None, default "regression"
        What the target is; None where only the attached table says so.
    classes : int, default 0
        Number of classes; 0 for regression.
    splits : int, default 1
        How many divisions into training and test rows there are.
    file : DataFile or None, default None
        The file it is read from; None for a generated set.
    more_files : tuple of DataFile, default ()
        Further files that it is read from.
    standardised : bool, default True
        Whether a network sees standardised inputs.
    validation : bool, default False
        Whether it has validation rows.
    weights : PublishedWeights or None, default None
        Weights of a network on it that somebody has published.
    attached : bool, default False
        Whether its rows are a table of the user's that travels with the spec.
    """

    name: str
    title: str
    doc: str
    inputs: int
    rows: int
    task: Task | None = "regression"
    classes: int = 0
    splits: int = 1
    file: DataFile | None = None
    more_files: tuple[DataFile, ...] = ()
    standardised: bool = True
    validation: bool = False
    weights: PublishedWeights | None = None
    attached: bool = False

    @abstractmethod
    def load(self, split: int) -> DataSet:
        """Give one split, whose number has been checked."""

    def describe(self) -> dict[str, Any]:
        """Give the facts for a catalogue as plain JSON values."""
        return {
            "name": self.name,
            "title": self.title,
            "doc": self.doc,
            "task": self.task,
            "classes": self.classes,
            "inputs": self.inputs,
            "rows": self.rows,
            "splits": self.splits,
            "standardised": self.standardised,
            "validation": self.validation,
            "published_weights": self.weights is not None,
            "attached": self.attached,
        }
