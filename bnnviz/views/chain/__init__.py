"""Draw one run's chains."""
