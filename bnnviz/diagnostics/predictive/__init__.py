"""Diagnostics of predictions: metrics, calibration, uncertainty."""
