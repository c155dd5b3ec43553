"""Runs that show one thing: the step-size bias, and the double well."""
