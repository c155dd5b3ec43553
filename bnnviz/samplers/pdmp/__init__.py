"""Piecewise deterministic Markov processes."""
