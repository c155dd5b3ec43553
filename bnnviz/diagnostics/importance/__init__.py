"""Diagnose weighted draws, and estimate the ratio of two densities."""
