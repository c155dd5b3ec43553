"""List the suites: a module each, with a `Suite` called ``SUITE``."""
