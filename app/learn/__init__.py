"""Teach: lessons of numbered steps with a live picture each, their glossary, and pieces to try by hand."""
