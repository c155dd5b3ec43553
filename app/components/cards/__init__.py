"""Cards and lines on the stage."""
