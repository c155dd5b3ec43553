"""Monitor a run by its draws: mixing, variances, weights, and warnings."""
