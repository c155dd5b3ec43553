"""Run samplers: runs, frames, recordings, and the backend that executes runs."""
