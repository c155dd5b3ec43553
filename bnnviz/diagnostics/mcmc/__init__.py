"""Diagnose chains: convergence, moments, and what a step size does to them."""
