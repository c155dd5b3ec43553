"""One module per family of data sets; each lists its entries in ``SETS``."""
