"""Call functions of ArviZ and scikit-learn, if installed."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from bnnviz import optional

_ARVIZ, _LEARN = "arviz_stats", "sklearn"


@cache  # it is called for every column
def array_stats() -> ModuleType:
    """Import the array functions of ArviZ."""
    return optional.require(f"{_ARVIZ}.base", "Effective sample sizes, R-hat and densities need").array_stats


def has_arviz() -> bool:
    """Return whether ArviZ is installed. Without ArviZ, some statistics are nan.

    Examples
    --------
    >>> from bnnviz import diagnostics
    >>> diagnostics.has_arviz()
    True
    """
    return optional.has(_ARVIZ)


def learn_metrics() -> ModuleType:
    """Import ``sklearn.metrics``.

    Examples
    --------
    >>> from bnnviz import diagnostics
    >>> diagnostics.learn_metrics().__name__
    'sklearn.metrics'
    """
    return optional.require(f"{_LEARN}.metrics", "Precision, recall, F1, AUC and ROC curves need")


def has_learn() -> bool:
    """Return whether scikit-learn is installed.

    Examples
    --------
    >>> from bnnviz import diagnostics
    >>> diagnostics.has_learn()
    True
    """
    return optional.has(_LEARN)
