"""Keep published posteriors with reference means and standard deviations, to judge samplers by."""

from bnnviz.benchmarks.posteriors.catalogue import POSTERIORS, Moments, Posterior

__all__ = ["POSTERIORS", "Moments", "Posterior"]
