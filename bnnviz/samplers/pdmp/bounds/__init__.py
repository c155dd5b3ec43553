"""Envelopes of the rate of a piecewise deterministic process."""
