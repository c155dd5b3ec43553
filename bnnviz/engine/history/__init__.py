"""Go back in a live run, and fork it."""
