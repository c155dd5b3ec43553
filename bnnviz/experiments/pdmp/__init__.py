"""List the experiments of the paper on piecewise deterministic Markov processes."""
