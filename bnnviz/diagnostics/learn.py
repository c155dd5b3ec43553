"""scikit-learn's metrics, where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType

from bnnviz.errors import BnnvizError


def learn_metrics() -> ModuleType:
    """Return the module ``sklearn.metrics``.

    Raises
    ------
    BnnvizError
        If scikit-learn is not installed.
    """
    try:
        from sklearn import metrics
    except ImportError as error:
        raise BnnvizError(
            "Precision, recall, F1, AUC and ROC curves come from scikit-learn, which is not installed: pip install"
            " 'bnnviz[metrics]'."
        ) from error
    return metrics


def has_learn() -> bool:
    """Return whether scikit-learn is installed."""
    return find_spec("sklearn") is not None
