"""The experiments of the paper on piecewise deterministic Markov processes."""
