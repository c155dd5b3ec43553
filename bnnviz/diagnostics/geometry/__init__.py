"""Find principal axes of draws, and undo the symmetries of a network's weights."""
