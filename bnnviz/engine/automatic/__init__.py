"""Choose a sampler and its settings for a table by a pilot, and end its run in time."""
