"""Check that images fit a network."""

from __future__ import annotations

from collections.abc import Sequence

from bnnviz.errors import BnnvizError


def check_images(shape: Sequence[int], classes: int, network: str, least: int) -> tuple[int, int, int]:
    """Return the shape of an image of at least ``least`` pixels in height and width, or raise a `BnnvizError`."""
    sizes = tuple(shape)
    if len(sizes) != 3 or not all(_counts(size) for size in sizes):
        raise BnnvizError(
            f"{network} reads images of shape (channels, height, width), three positive integers, not"
            f" {sizes}; choose a data set of images.",
            "network",
        )
    if min(sizes[1:]) < least:
        raise BnnvizError(
            f"{network} needs images of at least {least} x {least} pixels, but these have {sizes[1]} x {sizes[2]};"
            " choose another network or larger images.",
            "network",
        )
    if not _counts(classes) or classes < 2:
        raise BnnvizError(f"{network} needs at least 2 classes, not {classes!r}.", "network")
    return sizes


def _counts(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and size >= 1
