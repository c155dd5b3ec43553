"""Keep published posteriors with reference means and standard deviations, to judge samplers by."""

from bnnviz.benchmarks.posteriors.catalogue import POSTERIORS, Posterior, ReferenceMoments

__all__ = ["POSTERIORS", "ReferenceMoments", "Posterior"]
