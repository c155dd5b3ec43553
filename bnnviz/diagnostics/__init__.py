"""Diagnose draws: arrays in, arrays out."""

from bnnviz.diagnostics.geometry.pca import last_axis, principal_axes
from bnnviz.diagnostics.geometry.symmetry import ODD, canonical
from bnnviz.diagnostics.importance.kliep import Ratio, kliep
from bnnviz.diagnostics.importance.weights import (
    Weighted,
    log_evidence,
    normalised,
    pareto_k,
    systematic,
    weight_ess,
    weighted_moments,
)
from bnnviz.diagnostics.mcmc.convergence import autocorrelation, ess, ess_each, mcse, rhat
from bnnviz.diagnostics.mcmc.crossings import Crossings, crossings
from bnnviz.diagnostics.mcmc.marginals import column_quantiles, correlation, density
from bnnviz.diagnostics.mcmc.moments import PathMoments, moments_with_errors, path_moments
from bnnviz.diagnostics.mcmc.stein import VarianceInflation, variance_inflation
from bnnviz.diagnostics.predictive.calibration import PAPER_BINS, Reliability, calibration_error, reliability
from bnnviz.diagnostics.predictive.coverage import Coverage, coverage
from bnnviz.diagnostics.predictive.detection import Detection, Steps, detection, score_ecdf, score_histogram
from bnnviz.diagnostics.predictive.intervals import mean_interval, share_interval
from bnnviz.diagnostics.predictive.metrics import (
    class_metrics,
    confusion,
    crps_of_draws,
    number_metrics,
)
from bnnviz.diagnostics.predictive.probabilities import ProbabilitySpread, probability_spread
from bnnviz.diagnostics.predictive.roc import Roc, roc_envelopes
from bnnviz.diagnostics.predictive.squared_errors import ErrorSpread, error_spread
from bnnviz.diagnostics.predictive.uncertainty import (
    ClassIntervals,
    FunctionEss,
    class_intervals,
    expected_entropy,
    function_ess,
    mutual_information,
    predictive_entropy,
)

__all__ = [
    "PAPER_BINS",
    "ProbabilitySpread",
    "ClassIntervals",
    "Coverage",
    "Crossings",
    "Detection",
    "ErrorSpread",
    "FunctionEss",
    "ODD",
    "PathMoments",
    "Ratio",
    "Reliability",
    "Roc",
    "Steps",
    "Weighted",
    "VarianceInflation",
    "autocorrelation",
    "calibration_error",
    "canonical",
    "probability_spread",
    "class_intervals",
    "class_metrics",
    "crps_of_draws",
    "column_quantiles",
    "confusion",
    "correlation",
    "coverage",
    "crossings",
    "density",
    "detection",
    "error_spread",
    "ess",
    "ess_each",
    "expected_entropy",
    "function_ess",
    "kliep",
    "last_axis",
    "log_evidence",
    "mcse",
    "mean_interval",
    "moments_with_errors",
    "mutual_information",
    "normalised",
    "number_metrics",
    "pareto_k",
    "path_moments",
    "predictive_entropy",
    "principal_axes",
    "reliability",
    "rhat",
    "roc_envelopes",
    "score_ecdf",
    "score_histogram",
    "share_interval",
    "systematic",
    "weight_ess",
    "weighted_moments",
    "variance_inflation",
]
