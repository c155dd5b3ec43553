"""Views of weighted draws."""
