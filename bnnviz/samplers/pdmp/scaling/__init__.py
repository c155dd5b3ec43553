"""Hold what the dynamics of a PDMP are relative to: a metric, or the reference of the Boomerang."""
