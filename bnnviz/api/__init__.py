"""The Python interface of `bnnviz` (``bnnviz.sample``, ``bnnviz.race``)."""
