"""What lies on the stage."""
