"""Build the documentation: `docs/site/build.py` stages texts, draws what is drawn, and calls Sphinx."""
