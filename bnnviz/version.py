"""Hold the version, in a file of its own: every layer may read it."""

VERSION = "0.1.0"
