"""Diagnose chains: convergence, moments, and bias due to step sizes."""
