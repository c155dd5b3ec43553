"""Find data sets by name: generated ones and downloaded ones whose checksum is known; numpy and scipy only."""

from __future__ import annotations

from bnnviz.data.dataset import DataSet, Standardiser
from bnnviz.data.images import ImageSet
from bnnviz.data.published import PublishedWeights
from bnnviz.data.registry import (
    describe,
    fetch,
    is_here,
    load,
    names,
    published_weights,
    register,
    remark,
)
from bnnviz.data.tables.read_table import read_table
from bnnviz.data.tables.user_table import UserTable

__all__ = [
    "DataSet",
    "ImageSet",
    "UserTable",
    "PublishedWeights",
    "Standardiser",
    "describe",
    "fetch",
    "is_here",
    "load",
    "names",
    "published_weights",
    "read_table",
    "register",
    "remark",
]
