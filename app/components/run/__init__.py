"""Drive a run and share it: transport, recording, sharing."""
