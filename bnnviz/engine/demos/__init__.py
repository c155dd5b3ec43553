"""Show the double well."""
