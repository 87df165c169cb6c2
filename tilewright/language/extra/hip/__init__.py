"""What only AMD GPUs have."""

from __future__ import annotations

from ...core import builtin, tensor
from ...dtypes import int64
from ..cuda import num_threads, num_warps, smid
from . import libdevice


@builtin
def memrealtime(_semantic=None):
    """int64 ticks of the GPU's constant 100 MHz clock."""
    return tensor(_semantic.builder.special("memrealtime", int64), int64)


__all__ = ["libdevice", "memrealtime", "num_threads", "num_warps", "smid"]
