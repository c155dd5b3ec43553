"""Read and pack tables of the user's own."""
