"""Samplers of functions and of distributions."""
