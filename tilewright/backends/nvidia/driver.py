"""Triton's import path of the driver of NVIDIA GPUs."""

from tilewright.runtime.drivers.cuda import CudaDriver

__all__ = ["CudaDriver"]
