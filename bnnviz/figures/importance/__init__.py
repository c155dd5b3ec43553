"""Draw weighted draws, populations of proposals and functionals."""
