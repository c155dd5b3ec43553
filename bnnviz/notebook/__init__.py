"""Show live figures in a notebook."""
