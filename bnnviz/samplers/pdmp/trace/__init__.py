"""The picture of one chain of a piecewise deterministic process."""
