"""Compare several runs with each other, or with published results."""
