"""Explain a page: tour, help, scenes, the voice for screen readers."""
