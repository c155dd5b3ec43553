"""The engine: runs, frames, draws, recordings, and the backend that executes runs."""
