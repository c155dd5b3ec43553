"""Compile the step of a sampler, and take it over in a run."""
