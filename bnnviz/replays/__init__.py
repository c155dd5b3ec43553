"""Show the frames of a run as one page without a server."""
