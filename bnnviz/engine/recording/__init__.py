"""Keep runs on disk: the writer, the reader, and exports to other formats."""
