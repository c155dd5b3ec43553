"""Diagnostics of weighted draws, and the ratio of two densities."""
