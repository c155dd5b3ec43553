"""Draw weighted draws."""
