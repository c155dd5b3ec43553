"""What the draws of a network predict, and how good that is."""
