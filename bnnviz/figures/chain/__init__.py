"""Draw draws of chains, their paths and how well they mix."""
