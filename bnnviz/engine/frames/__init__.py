"""Build frames: what the views show at one instant."""
