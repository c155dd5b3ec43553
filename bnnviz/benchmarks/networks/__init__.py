"""Compare samplers on posteriors of networks, where nobody knows the moments."""
