"""Diagnostics: arrays in, arrays out."""

from bnnviz.diagnostics.convergence import autocorrelation, ess, ess_each, ess_tail, rhat
from bnnviz.diagnostics.marginals import correlation, density
from bnnviz.diagnostics.moments import PathMoments, moments_with_errors, path_moments
from bnnviz.diagnostics.pca import last_axis, principal_axes
from bnnviz.diagnostics.stein import Widening, widening
from bnnviz.diagnostics.symmetry import ODD, canonical

__all__ = [
    "ODD",
    "PathMoments",
    "Widening",
    "autocorrelation",
    "canonical",
    "correlation",
    "density",
    "ess",
    "ess_each",
    "ess_tail",
    "last_axis",
    "moments_with_errors",
    "path_moments",
    "principal_axes",
    "rhat",
    "widening",
]
