"""Give programs and notebooks what they call; `bnnviz` has the names (``bnnviz.sample``, ``bnnviz.race``)."""
