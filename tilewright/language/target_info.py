"""What the kernel is compiled for, as constants."""

from __future__ import annotations

import re
from typing import Any

from .core import active, builtin, is_active

_CDNA3 = ("gfx940", "gfx941", "gfx942")


def current_target() -> Any:
    """The target (attributes `backend`, `arch`, `warp_size`) of the kernel that is being traced; None outside."""
    return active().target if is_active() else None


current_target.__tilewright_builtin__ = True


@builtin
def is_cuda(_semantic=None):
    """Whether the target is an NVIDIA GPU."""
    return _semantic.target.backend == "cuda"


@builtin
def cuda_capability_geq(major, minor=0, _semantic=None):
    """Whether the target is an NVIDIA GPU of at least compute capability major.minor."""
    target = _semantic.target
    return target.backend == "cuda" and int(target.arch) >= major * 10 + minor


@builtin
def is_hip(_semantic=None):
    """Whether the target is an AMD GPU."""
    return _semantic.target.backend == "hip"


def _arch(target: Any) -> str:
    """The AMD architecture without its features, "" if the target is none."""
    return re.split("[:-]", str(target.arch))[0] if target.backend == "hip" else ""


@builtin
def is_hip_cdna3(_semantic=None):
    """Whether the target is an AMD CDNA3 GPU (MI300)."""
    return _arch(_semantic.target) in _CDNA3


@builtin
def is_hip_cdna4(_semantic=None):
    """Whether the target is an AMD CDNA4 GPU (MI350)."""
    return _arch(_semantic.target) == "gfx950"


@builtin
def is_hip_gfx1250(_semantic=None):
    """Whether the target is gfx1250."""
    return _arch(_semantic.target) == "gfx1250"
