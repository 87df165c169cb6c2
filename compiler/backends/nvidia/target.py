"""Facts about NVIDIA GPUs that the compiler decides by."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.errors import UnsupportedTarget

from ..base import GPUTarget


@dataclass(frozen=True)
class Arch:
    """One compute capability. `ptx` is the oldest PTX ISA that knows it, `cuda` the oldest toolkit, `max_shared` bytes a block may use."""

    capability: int
    chip: str
    ptx: int
    cuda: str
    max_shared: int


ARCHS = {
    80: Arch(80, "sm_80", 70, "11.0", 166912),
    86: Arch(86, "sm_86", 71, "11.1", 101376),
    89: Arch(89, "sm_89", 78, "11.8", 101376),
    90: Arch(90, "sm_90a", 80, "12.0", 232448),
    100: Arch(100, "sm_100a", 86, "12.7", 232448),
    120: Arch(120, "sm_120a", 87, "12.8", 101376),
}

#: The PTX ISA that kernels are written in unless `ptx_version` says otherwise: that of CUDA 12.8, which knows every target above.
DEFAULT_PTX = 87


def arch_of(target: GPUTarget) -> Arch:
    """The facts about `target`; raises UnsupportedTarget, naming the targets there are."""
    if target.backend != "cuda" or target.arch not in ARCHS:
        known = ", ".join(str(c) for c in ARCHS)
        raise UnsupportedTarget(
            f"GPUTarget({target.backend!r}, {target.arch!r}, {target.warp_size}) is not supported: cuda targets are {known}"
        )
    if target.warp_size != 32:
        raise UnsupportedTarget(f"a warp of cuda:{target.arch} has 32 threads, not {target.warp_size}")
    return ARCHS[target.arch]


def parse_arch(text: str) -> int:
    """`"sm90"`, `"sm_90a"` or `"90"` -> 90; raises ValueError."""
    match = re.fullmatch(r"(?:sm_?)?(\d+)a?", text)
    if not match:
        raise ValueError(f"arch must look like 'sm90', not {text!r}")
    return int(match[1])
