"""List the experiments of the PMCnet paper."""
