"""Keep runs on disk: the writer, the reader, and the formats of other programs."""
