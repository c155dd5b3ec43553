"""Views of the demonstrations: the double well, and errors against step sizes."""
