"""Define the version, in a separate module that every layer may import."""

VERSION = "0.1.0"
