"""An image data set of the registry, and the forms in which its files may be there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from bnnviz.data.dataset import Task
from bnnviz.data.entry import Entry, Kind
from bnnviz.data.files import VARIABLE, DataFile, fetch, is_here, shared_folder
from bnnviz.data.images import ImageSet
from bnnviz.errors import BnnvizError


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """What a form's files hold.

    Parameters
    ----------
    x_train, x_test : ndarray of uint8, shape (rows, channels, height, width)
    y_train, y_test : ndarray of int, shape (rows,)
    groups : ndarray of int or None, default None
        The group of each training row, see `ImageSet`.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    groups: np.ndarray | None = None


@dataclass(frozen=True)
class Form:
    """One of the ways in which a set's files may be there.

    Parameters
    ----------
    files : tuple of DataFile
        All that it is read from.
    read : callable
        ``read(place of the first file, ...) -> Rows``.
    note : str, default ""
        What is to be said of it, such as that it is a part of the set only.
    """

    files: tuple[DataFile, ...]
    read: Callable[..., Rows]
    note: str = ""

    @property
    def is_here(self) -> bool:
        """Whether all its files are where they are looked for."""
        return all(is_here(file) for file in self.files)

    @property
    def is_published(self) -> bool:
        """Whether all its files can be downloaded."""
        return all(file.url is not None for file in self.files)


@dataclass(frozen=True, kw_only=True)
class Images(Entry):
    """Labelled images.

    Parameters
    ----------
    shape : (int, int, int)
        Channels, height and width.
    class_names : tuple of str
        What each class is called.
    forms : tuple of Form
        In the order in which they are looked for.
    mean, sd : tuple of float or None, default None
        See `ImageSet`.
    finish : callable or None, default None
        ``finish(ImageSet) -> ImageSet``: what makes this set of the one that was published; None where it is that one.
    """

    kind: ClassVar[Kind] = "images"
    shape: tuple[int, int, int]
    class_names: tuple[str, ...]
    forms: tuple[Form, ...]
    mean: tuple[float, ...] | None = None
    sd: tuple[float, ...] | None = None
    finish: Callable[[ImageSet], ImageSet] | None = None
    task: Task = "classification"
    inputs: int = field(init=False)
    classes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", int(np.prod(self.shape)))
        object.__setattr__(self, "classes", len(self.class_names))

    def form(self) -> Form:
        """Return the form that is read on this machine: the first whose files are all there, else one to download.

        Raises
        ------
        BnnvizError
            If its files are not in the folder of BNNVIZ_DATA, or nobody publishes them.
        """
        usable = self._usable()
        if usable:
            return usable[0]
        folder = shared_folder()
        ways = "; or ".join(", ".join(file.path for file in form.files) for form in self.forms)
        if folder:
            download = f", or unset {VARIABLE} to download it" if any(form.is_published for form in self.forms) else ""
            raise BnnvizError(f"The folder {folder} does not hold {self.title}: put {ways} there{download}.", "data")
        raise BnnvizError(
            f"Nobody is known to publish {self.title}: set {VARIABLE} to a folder that holds {ways}.",
            "data",
        )

    def _usable(self) -> list[Form]:
        return [form for form in self.forms if (form.is_here if shared_folder() else form.is_published)]

    def is_here(self) -> bool:
        """Tell whether the files of `form` are on this machine; they are not checked."""
        return any(form.is_here for form in self._usable()[:1])

    def remark(self) -> str:
        """Return what is to be said of the form that is on this machine."""
        return self.form().note if self.is_here() else ""

    def sources(self) -> tuple[DataFile, ...]:
        """Give the files of `form`."""
        return self.form().files

    def load(self, split: int) -> ImageSet:
        """Read the files, downloading them if needed; there is one split only."""
        form = self.form()
        places: list[Path] = [fetch(file) for file in form.files]
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
            x_train=rows.x_train,
            y_train=rows.y_train,
            x_test=rows.x_test,
            y_test=rows.y_test,
            class_names=self.class_names,
            mean=self.mean,
            sd=self.sd,
            groups=rows.groups,
            notes=(form.note,) if form.note else (),
        )
        return found if self.finish is None else self.finish(found)
