"""List data sets, a module for each family; each lists its entries in ``SETS``."""
