"""Compile the step of a sampler, and switch a run to it."""
