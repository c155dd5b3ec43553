"""Describe a data set before anything is generated or downloaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from bnnviz.data.dataset import DataSet, Task
from bnnviz.data.files import DataFile, find
from bnnviz.data.images import ImageSet
from bnnviz.data.published import PublishedWeights

Kind = Literal["table", "images"]
KINDS = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class DataEntry(ABC):
    """One data set of the registry; a family of sets is a subclass."""

    name: str
    title: str
    doc: str
    inputs: int
    rows: int
    task: Task | None = "regression"
    classes: int = 0
    splits: int = 1
    files: tuple[DataFile, ...] = ()
    standardised: bool = True
    validation: bool = False
    weights: PublishedWeights | None = None
    attached: bool = False
    kind: ClassVar[Kind] = "table"
    shape: tuple[int, int, int] | None = None
    trainable: bool = True

    @abstractmethod
    def load(self, split: int) -> DataSet | ImageSet:
        """Return one split, whose number has been checked."""

    def made(self, **values: Any) -> DataSet:
        """Return a data set with the entry's name, title, doc, task and standardisation."""
        named = {"name": self.name, "title": self.title, "doc": self.doc, "task": self.task}
        return DataSet(**named, standardise=self.standardised, **values)

    def sources(self) -> tuple[DataFile, ...]:
        """Return the files of the set on this machine, the first one first; none for a generated set."""
        return self.files

    def is_here(self) -> bool:
        """Return whether the set loads without a download; files are not checked."""
        return all(find(file) is not None for file in self.sources())

    def remark(self) -> str:
        """Return a remark on the local files, for example that they are a subset."""
        return ""

    def describe(self) -> dict[str, Any]:
        """Return the entry's facts for a catalogue as plain JSON values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "title": self.title,
            "doc": self.doc,
            "task": self.task,
            "classes": self.classes,
            "inputs": self.inputs,
            "shape": None if self.shape is None else list(self.shape),
            "rows": self.rows,
            "trainable": self.trainable,
            "splits": self.splits,
            "standardised": self.standardised,
            "validation": self.validation,
            "published_weights": self.weights is not None,
            "attached": self.attached,
        }
