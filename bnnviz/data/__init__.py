"""Named data sets: generated ones and downloaded ones whose checksum is known; numpy only."""

from __future__ import annotations

from bnnviz.data.dataset import DataSet, Standardiser
from bnnviz.data.registry import describe, fetch, load, names, path, register

__all__ = ["DataSet", "Standardiser", "describe", "fetch", "load", "names", "path", "register"]
