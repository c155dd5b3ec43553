"""Describe what to run as plain JSON, a link, Python and a command, with the catalogue of options; without torch."""
