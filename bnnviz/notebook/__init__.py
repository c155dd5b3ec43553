"""Live figures in a notebook."""
