"""Draw one chain of a piecewise deterministic process."""
