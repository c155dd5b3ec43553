"""Sample functions and distributions."""
