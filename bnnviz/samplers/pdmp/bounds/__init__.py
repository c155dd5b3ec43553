"""Bound the rate of a piecewise deterministic process by envelopes."""
