"""Analyses over the `tile` dialect."""
