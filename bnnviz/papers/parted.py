"""Experiments that have a part for each data set, at a scale that ends in minutes or at the paper's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bnnviz import data as datasets
from bnnviz.errors import BnnvizError
from bnnviz.papers.experiment import Experiment

SCALES = ("small", "paper")


@dataclass(frozen=True)
class Parted(Experiment):
    """An experiment on images with a part for each data set, at two scales.

    Parameters
    ----------
    data : str
        The data set of this part.
    scale : {"small", "paper"}
    parts : tuple of str
        All data sets that have a part.
    made : callable
        Returns the part of a data set at a scale.
    """

    data: str = ""
    scale: str = "small"
    parts: tuple[str, ...] = ()
    made: Callable[[str, str], Parted] | None = field(default=None, repr=False, compare=False)

    def at(self, data: str | None, scale: str | None) -> Parted:
        """Return the part of a data set at a scale; None leaves what it is.

        Raises
        ------
        BnnvizError
            If it has no such part.
        """
        data, scale = data or self.data, scale or self.scale
        if data not in self.parts:
            raise BnnvizError(f"{self.name} has no part {data!r}; choose one of {', '.join(self.parts)}.", "data")
        if scale not in SCALES:
            raise BnnvizError(f"There is no scale {scale!r}; choose one of {', '.join(SCALES)}.", "scale")
        return self.made(data, scale)

    def check(self) -> None:
        """Raise a `BnnvizError` that names what there is instead, if there are no images to train on."""
        try:
            there = len(datasets.load(self.data).y_train) > 0
            missing = f"There are no training images of {self.data} here: fetch the whole set."
        except BnnvizError as error:
            there, missing = False, error.sentence
        if not there:
            others = [name for name in self.parts if name != self.data and datasets.is_here(name)]
            stand_in = f" Or take what is here: --data {' or '.join(others)}." if others else ""
            raise BnnvizError(missing + stand_in, "data")
