"""The version, in a file of its own: every floor may read it."""

VERSION = "0.1.0"
