"""Triton's import path of what a driver is made of."""

from tilewright.runtime.drivers.base import Benchmarker, DriverBase, GPUDriver

__all__ = ["Benchmarker", "DriverBase", "GPUDriver"]
