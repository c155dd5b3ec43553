"""Execute one spec: initialisation, warm-up, sampling, changes, checkpoints, and the step as compiled code."""
