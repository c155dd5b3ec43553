"""Draw what draws predict."""
