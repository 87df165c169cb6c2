"""Triton's import path of what a backend is made of."""

from tilewright.compiler.backends.base import BaseBackend, GPUTarget, Language

__all__ = ["BaseBackend", "GPUTarget", "Language"]
