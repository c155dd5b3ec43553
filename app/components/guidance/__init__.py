"""What explains: tour, help, scenes, the voice for screen readers."""
