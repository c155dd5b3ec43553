"""Frames: what the views show at one instant."""
