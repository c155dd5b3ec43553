"""Views of one run's chains."""
