"""Show, rename, send, replay and delete recordings."""
