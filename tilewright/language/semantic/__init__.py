"""Meaning of the language, one family of operations a file, over the `Builder` protocol."""
