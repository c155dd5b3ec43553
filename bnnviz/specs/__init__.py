"""Specs: what to run, as plain JSON, a link, Python and a command; and the catalogue of what there is. No torch."""
