"""What a run's draws say of themselves: mixing, variances, weights, and warnings."""
