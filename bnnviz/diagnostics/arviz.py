"""ArviZ's array functions, where it is installed."""

from __future__ import annotations

from types import ModuleType

from bnnviz.errors import BnnvizError


def array_stats() -> ModuleType:
    """Return ArviZ's functions of arrays.

    Raises
    ------
    BnnvizError
        If ArviZ is not installed.
    """
    try:
        from arviz_stats.base import array_stats
    except ImportError as error:
        raise BnnvizError(
            "Effective sample sizes and densities come from ArviZ, which is not installed: pip install"
            " 'bnnviz[metrics]'."
        ) from error
    return array_stats
