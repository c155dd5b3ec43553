"""Describe an image data set of the registry, and the forms in which its files may be there."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bnnviz.data.dataset import Task
from bnnviz.data.entry import DataEntry, Kind
from bnnviz.data.files import DataFile, DownloadError, fetch, find, locate
from bnnviz.data.formats import reading
from bnnviz.data.images import ImageSet
from bnnviz.errors import BnnvizError

_TRIED_AGAIN_S = 300.0  # after a failed download, if a part replaces the whole set


class ImageRows(NamedTuple):
    """The content of a form's files: images (rows, channels, height, width) and labels (rows,)."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    test_rows: np.ndarray | None = None


def read_part(place: Path) -> ImageRows:
    """Read some rows of a set from an ``.npz``: grey images, or colours last; training and row numbers may lack."""
    with reading(place, ".npz file"), np.load(place, allow_pickle=False) as found:
        x_test, y_test = _channels_first(found["x_test"]), found["y_test"]
        x_train = _channels_first(found["x_train"]) if "x_train" in found else x_test[:0]
        y_train = found.get("y_train", y_test[:0])
        return ImageRows(x_train, y_train, x_test, y_test, found.get("test_rows"))


def _channels_first(images: np.ndarray) -> np.ndarray:
    return images[:, None] if images.ndim == 3 else np.ascontiguousarray(np.moveaxis(images, -1, 1))


@dataclass(frozen=True)
class Form:
    """One of the ways in which a set's files may be there."""

    files: tuple[DataFile, ...]
    read: Callable[..., ImageRows]
    note: str = ""

    def is_here(self, *, embedded: bool = True) -> bool:
        """Return whether all files are on this machine, with or without those that come with bnnviz."""
        return all(find(file, embedded=embedded) is not None for file in self.files)

    @property
    def is_published(self) -> bool:
        """Whether all its files can be downloaded."""
        return all(file.url is not None for file in self.files)


@dataclass(frozen=True, kw_only=True)
class Images(DataEntry):
    """Labelled images."""

    kind: ClassVar[Kind] = "images"
    shape: tuple[int, int, int]
    class_names: tuple[str, ...]
    forms: tuple[Form, ...]
    mean: tuple[float, ...] | None = None
    sd: tuple[float, ...] | None = None
    finish: Callable[[ImageSet, ImageRows], ImageSet] | None = None
    task: Task = "classification"
    inputs: int = field(init=False)
    classes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", int(np.prod(self.shape)))
        object.__setattr__(self, "classes", len(self.class_names))

    def _local(self, *, embedded: bool = True) -> Form | None:
        """Return the first form on this machine, with or without those that come with bnnviz."""
        return next((form for form in self.forms if form.is_here(embedded=embedded)), None)

    def _form(self) -> Form:
        """Return the first form whose files are all on this machine, or else the one to download."""
        local = self._local(embedded=False)
        return local or next((form for form in self.forms if form.is_published), self.forms[0])

    def is_here(self) -> bool:
        """Return whether the files of a form are on this machine; they are not checked."""
        return self._local() is not None

    def remark(self) -> str:
        """Return the note of the form on this machine."""
        here = self._local(embedded=False) or self._local()
        return "" if here is None else here.note

    def sources(self) -> tuple[DataFile, ...]:
        """Return the files of the local form, or else of the published one."""
        return self._form().files

    def load(self, split: int) -> ImageSet:
        """Read the files, downloading them if needed; there is one split only.

        If the download fails, a part that comes with bnnviz replaces the set, with a note.
        """
        form, places, note = self._fetched()
        rows = form.read(*places)
        if rows.x_test.shape[1:] != self.shape:
            raise BnnvizError(
                f"The images in {places[0]} have the shape {rows.x_test.shape[1:]} and not {self.shape}: put the"
                " published file there.",
                "data",
            )
        found = ImageSet(
            name=self.name,
            title=self.title,
            doc=self.doc,
            **{name: value for name, value in rows._asdict().items() if name != "test_rows"},
            class_names=self.class_names,
            mean=self.mean,
            sd=self.sd,
            notes=(note,) if note else (),
            stands_in=not form.is_here(embedded=False),
        )
        return found if self.finish is None else self.finish(found, rows)

    def _fetched(self) -> tuple[Form, list[Path], str]:
        """Return the form to read, the paths of its checked files, and its note."""
        form = self._form()
        stand_in = None if form.is_here(embedded=False) else self._local()
        when, failure = _failures.get(self.name, (-math.inf, None))
        try:
            # Each try may take as long as a connection is waited for.
            if stand_in and failure is not None and time.monotonic() - when < _TRIED_AGAIN_S:
                raise failure
            return form, [fetch(file) for file in form.files], form.note
        except DownloadError as error:
            if stand_in is None:
                raise
            _failures[self.name] = time.monotonic(), error
            reason = f"since the download failed ({error.cause}); 'bnnviz data fetch {self.name}' tries again"
        note = f"{stand_in.note.removesuffix('.')}, {reason}."
        return stand_in, [locate(file) for file in stand_in.files], note


#: Times and errors of failed downloads that a part replaced.
_failures: dict[str, tuple[float, DownloadError]] = {}


@cache
def _all_facts() -> dict[str, dict[str, Any]]:
    return json.loads(Path(__file__).with_name("sets").joinpath("images.json").read_text(encoding="utf-8"))


def facts(name: str) -> dict[str, Any]:
    """Return a set's facts in ``sets/images.json`` as arguments of `Images`."""
    found = _all_facts()[name].items()
    return {"name": name} | {key: tuple(value) if isinstance(value, list) else value for key, value in found}
