"""Adaptive importance sampling: populations of proposals."""
