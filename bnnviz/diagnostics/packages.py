"""Call functions of ArviZ and scikit-learn, if installed."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from bnnviz import optional


@cache  # it is called for every column
def array_stats() -> ModuleType:
    """Import the array functions of ArviZ."""
    return optional.require("arviz_stats.base", "Effective sample sizes, R-hat and densities need").array_stats


def learn_metrics() -> ModuleType:
    """Import ``sklearn.metrics``."""
    return optional.require("sklearn.metrics", "Precision, recall, F1, AUC and ROC curves need")
