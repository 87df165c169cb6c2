"""Triton's import path of the NVIDIA backend."""
