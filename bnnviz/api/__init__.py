"""What a program or a notebook calls; `bnnviz` has the names (``bnnviz.sample``, ``bnnviz.race``)."""
