"""ArviZ's array functions, where it is installed."""

from __future__ import annotations

from types import ModuleType

from bnnviz import optional

_PACKAGE = "arviz_stats"


def array_stats() -> ModuleType:
    """Return ArviZ's functions of arrays.

    Raises
    ------
    BnnvizError
        If ArviZ is not installed.
    """
    return optional.require(f"{_PACKAGE}.base", "Effective sample sizes, R-hat and densities need").array_stats


def has_arviz() -> bool:
    """Return whether ArviZ's functions are there: a figure of theirs is nan without them."""
    return optional.has(_PACKAGE)
