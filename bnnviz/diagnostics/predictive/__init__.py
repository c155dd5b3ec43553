"""Diagnose predictions: metrics, calibration, uncertainty."""
