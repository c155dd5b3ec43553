"""scikit-learn's metrics, where it is installed."""

from __future__ import annotations

from types import ModuleType

from bnnviz import optional

_PACKAGE = "sklearn"


def learn_metrics() -> ModuleType:
    """Return the module ``sklearn.metrics``.

    Raises
    ------
    BnnvizError
        If scikit-learn is not installed.
    """
    return optional.require(f"{_PACKAGE}.metrics", "Precision, recall, F1, AUC and ROC curves need")


def has_learn() -> bool:
    """Return whether scikit-learn is installed."""
    return optional.has(_PACKAGE)
