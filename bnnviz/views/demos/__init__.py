"""Draw the demonstrations: the double well, and errors against step sizes."""
