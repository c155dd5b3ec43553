"""Diagnostics: arrays in, arrays out."""

from bnnviz.diagnostics.calibration import calibration_error
from bnnviz.diagnostics.chances import ChanceSpread, chance_spread
from bnnviz.diagnostics.convergence import autocorrelation, ess, ess_each, ess_tail, rhat
from bnnviz.diagnostics.crossings import Crossings, crossings
from bnnviz.diagnostics.errors2 import ErrorSpread, error_spread
from bnnviz.diagnostics.importance import (
    Weighted,
    log_evidence,
    normalised,
    pareto_k,
    systematic,
    weight_ess,
    weighted_moments,
)
from bnnviz.diagnostics.kliep import Ratio, kliep
from bnnviz.diagnostics.learn import has_learn, learn_metrics
from bnnviz.diagnostics.marginals import correlation, density
from bnnviz.diagnostics.metrics import class_metrics, confusion, number_metrics
from bnnviz.diagnostics.moments import PathMoments, moments_with_errors, path_moments
from bnnviz.diagnostics.pca import last_axis, principal_axes
from bnnviz.diagnostics.recursion import Slope, forgetting, largest_stable, log_slope, stationary_variance
from bnnviz.diagnostics.roc import Roc, roc_envelopes
from bnnviz.diagnostics.stein import Widening, widening
from bnnviz.diagnostics.symmetry import ODD, canonical

__all__ = [
    "weighted_moments",
    "weight_ess",
    "systematic",
    "pareto_k",
    "normalised",
    "log_evidence",
    "Weighted",
    "ODD",
    "ChanceSpread",
    "Crossings",
    "ErrorSpread",
    "PathMoments",
    "Ratio",
    "Roc",
    "Slope",
    "Widening",
    "autocorrelation",
    "calibration_error",
    "canonical",
    "chance_spread",
    "class_metrics",
    "confusion",
    "correlation",
    "crossings",
    "density",
    "error_spread",
    "ess",
    "ess_each",
    "ess_tail",
    "forgetting",
    "has_learn",
    "kliep",
    "largest_stable",
    "last_axis",
    "learn_metrics",
    "log_slope",
    "moments_with_errors",
    "number_metrics",
    "path_moments",
    "principal_axes",
    "rhat",
    "roc_envelopes",
    "stationary_variance",
    "widening",
]
