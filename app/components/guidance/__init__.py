"""Explain a page: help, scenes, the voice for screen readers."""
