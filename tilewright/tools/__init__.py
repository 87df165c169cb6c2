"""Helpers on the host: tensor descriptors as kernel arguments, disassembly."""
