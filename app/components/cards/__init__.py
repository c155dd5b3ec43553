"""Show cards and lines on the stage."""
