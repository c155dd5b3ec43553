"""Principal axes of draws, and the symmetries of a network's weights."""
