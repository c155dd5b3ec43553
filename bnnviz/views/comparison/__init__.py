"""Views that set several runs or samplers beside each other."""
