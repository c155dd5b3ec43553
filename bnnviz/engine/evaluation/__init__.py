"""Predict by the draws of a network, and measure how good that is."""
