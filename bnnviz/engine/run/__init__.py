"""A run: initialisation, warm-up, sampling, changes, checkpoints, and the step as compiled code."""
