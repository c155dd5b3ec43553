"""Show one thing each: the step-size bias, and the double well."""
