"""Views of what draws predict."""
