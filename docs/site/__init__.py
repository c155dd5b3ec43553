"""Build the documentation: `docs/site/build.py` stages texts, draws figures, and calls Sphinx."""
