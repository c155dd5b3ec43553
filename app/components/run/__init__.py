"""Drive a run and share it: transport, recording, warm start, sharing."""
