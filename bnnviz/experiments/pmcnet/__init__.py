"""The experiments of the PMCnet paper."""
