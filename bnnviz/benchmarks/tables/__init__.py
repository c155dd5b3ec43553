"""Tables that default settings are judged on, and what other libraries predict of them."""

from bnnviz.benchmarks.tables.catalogue import TABLES, Table

__all__ = ["TABLES", "Table"]
