"""Set several runs or samplers beside each other."""
