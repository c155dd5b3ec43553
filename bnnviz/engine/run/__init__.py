"""Execute one spec: initialisation, warm-up, sampling, changes and checkpoints."""
