"""Sample by piecewise deterministic Markov processes."""
