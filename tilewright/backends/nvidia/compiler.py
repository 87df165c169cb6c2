"""Triton's import path of what compiles for NVIDIA GPUs."""

from tilewright.compiler.backends.nvidia.backend import NvidiaBackend as CUDABackend
from tilewright.compiler.backends.nvidia.options import NvidiaOptions as CUDAOptions

__all__ = ["CUDABackend", "CUDAOptions"]
