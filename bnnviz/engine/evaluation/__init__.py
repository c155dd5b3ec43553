"""Predict with the draws of a network, and evaluate the predictions."""
