"""Define the scaling of a PDMP's dynamics: a metric, or the reference of the Boomerang."""
