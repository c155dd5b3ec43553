"""Describe the columns of a data frame, and match those of another one to them by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz.data.tables import reading, source
from bnnviz.data.tables.columns import Column, describe, listed
from bnnviz.data.tables.encoder import framed
from bnnviz.data.tables.new_rows import column_as
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd


def frame_columns(given: Any) -> list[Column]:
    """Return the columns of a frame as inputs; constant ones are left out."""
    found = reading.read(given, "the frame", missing=())
    columns = [describe(found.frame[key], found.context) for key in found.frame]
    for column in columns:
        if column.error is not None:
            raise column.error
    return [column for column in columns if not column.is_passed_over]


def matched(given: Any, kinds: Mapping[str, str]) -> pd.DataFrame:
    """Return the columns of a frame that an encoder was fitted to; refuse a frame that lacks one."""
    if not source.is_frame(given):
        raise BnnvizError(f"Give a DataFrame with the columns of the training rows ({listed(list(kinds))}).", "X")
    found = reading.read(given, "the frame", missing=())
    lacking = [key for key in kinds if key not in found.frame]
    if lacking:
        raise BnnvizError(f"The frame lacks columns of the training rows ({listed(lacking)}).", "X")
    ignored = np.full(len(found.frame), "", dtype=object)
    return framed({key: column_as(found.frame[key], kind, found.context, ignored) for key, kind in kinds.items()})
