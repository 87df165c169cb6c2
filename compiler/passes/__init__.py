"""Passes of ours over the `tile` and `tilegpu` dialects, one a file; `registry.load()` imports them all."""
