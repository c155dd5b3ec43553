"""Draw what networks predict, and how well."""
