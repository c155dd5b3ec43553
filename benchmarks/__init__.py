"""Benchmarks of a checkout, run as ``python -m benchmarks SUITE``; they are not part of the package."""
