"""Texts of the project, and what makes pages of them."""
