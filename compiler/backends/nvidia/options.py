"""The options of the NVIDIA backend: compile options and launch keywords alike."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from tilewright import knobs

from ...multiprocessor import THREAD_REGISTERS
from ..base import GPUTarget
from .target import DEFAULT_PTX, arch_of, parse_arch

DOT_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")

#: Accepted and ignored: options of other releases of Triton that have no meaning here.
IGNORED = {
    "cluster_dims": (1, 1, 1),
    "num_buffers_warp_spec": 0,
    "num_consumer_groups": 0,
    "reg_dec_producer": 0,
    "reg_inc_consumer": 0,
    "instrumentation_mode": "",
    "fpsan_homomorphic_casts": False,
    "min_shared_mem": None,
    "sched4reg": False,
}


@dataclass(frozen=True)
class NvidiaOptions:
    """Compile options of one kernel: `num_warps` of 32 threads a block, `num_ctas` blocks a cluster, `maxnreg` registers a thread.

    With `tma`, tensor descriptors, and pointers to boxes of strided arrays, may become TMA copies. For arguments that TMA cannot take, the
    kernel is compiled again without.

    `persistent`: whether a CTA works on many programs, one after the other (`tile-loop-programs`); None where that pays, True wherever it
    is possible, and with the first products of the next program beside the end of each (`tilegpu-overlap-programs`), which None leaves to
    clusters: ptxas takes a fifth longer for it."""

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    warp_size: int = 32
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    enable_reflect_ftz: bool = True
    ptx_version: int | None = None
    ptx_options: str | None = None
    ir_override: str | None = None
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    clc: bool = False
    tma: bool = True
    persistent: bool | None = None
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4b15")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "tf32"
    allowed_dot_input_precisions: tuple[str, ...] = DOT_PRECISIONS
    max_num_imprecise_acc_default: int = 0
    extern_libs: tuple[tuple[str, str], ...] = ()
    debug: bool = False
    sanitize_overflow: bool = True
    backend_name: str = "cuda"
    arch: str = "sm80"

    @property
    def capability(self) -> int:
        """90 for `arch` "sm90"."""
        return parse_arch(self.arch)

    def hash(self) -> str:
        """sha256 over every option."""
        text = ";".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
        return hashlib.sha256(text.encode()).hexdigest()


NAMES = tuple(f.name for f in fields(NvidiaOptions))
_INT_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ptx_version")
_BOOL_OPTIONS = tuple(f.name for f in fields(NvidiaOptions) if isinstance(f.default, bool))
_TEXT_OPTIONS = ("ptx_options", "ir_override", "default_dot_input_precision")


def parse_options(target: GPUTarget, given: dict[str, Any]) -> NvidiaOptions:
    """The options for `target` made of keyword arguments; a keyword of value None means the default.

    Raises KeyError for an unknown name, ValueError for a value that is not accepted, UnsupportedTarget for `arch`.
    """
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in NAMES and name not in IGNORED:
            raise KeyError(f"Keyword argument {name} was specified but unrecognised. The options are {', '.join(NAMES)}")
    given = {name: value for name, value in given.items() if name not in IGNORED}
    for name in _INT_OPTIONS:
        if name in given:
            given[name] = _integer(name, given[name])
    for name in _BOOL_OPTIONS:
        if name in given:
            given[name] = _boolean(name, given[name])
    for name in _TEXT_OPTIONS:
        if name in given:
            if not isinstance(given[name], str | os.PathLike):
                raise ValueError(f"{name} must be a string, not {given[name]!r}")
            given[name] = os.fspath(given[name])
    if "extern_libs" in given:
        given["extern_libs"] = _libraries(given["extern_libs"])
    for name in ("supported_fp8_dtypes", "allowed_dot_input_precisions", "deprecated_fp8_dot_operand_dtypes"):
        if name in given:
            given[name] = tuple(given[name])
    override = given.pop("arch", None) or knobs.runtime.override_arch
    capability = arch_of(target._replace(arch=parse_arch(str(override))) if override else target).capability
    options = NvidiaOptions(**{**_defaults(capability), "enable_fp_fusion": knobs.language.default_fp_fusion, **given})
    _check(options, capability)
    return options


@lru_cache(maxsize=16)
def _defaults(capability: int) -> dict[str, Any]:
    fp8 = ("fp8e5", "fp8e4b15") + (("fp8e4nv",) if capability >= 89 else ())
    return {
        "arch": f"sm{capability}",
        "supported_fp8_dtypes": tuple(sorted(fp8)),
        "deprecated_fp8_dot_operand_dtypes": ("fp8e4b15",) if capability >= 90 else (),
        "max_num_imprecise_acc_default": 2**30 if capability == 90 else 0,
        "default_dot_input_precision": knobs.language.fp32_default or "tf32",
    }


def _integer(name: str, value: Any) -> int:
    value = getattr(value, "value", value)  # a tl.constexpr
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{name} must be an integer, not {value!r}")
    return value.__index__()


def _boolean(name: str, value: Any) -> bool:
    value = getattr(value, "value", value)
    if not isinstance(value, int) or value not in (0, 1):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def _libraries(given: Any) -> tuple[tuple[str, str], ...]:
    try:
        return tuple(sorted((str(name), str(path)) for name, path in (given.items() if isinstance(given, dict) else given)))
    except (TypeError, ValueError):
        raise ValueError(f"extern_libs must be a dict from names to files of LLVM bitcode, not {given!r}") from None


def _check(o: NvidiaOptions, capability: int) -> None:
    if not 1 <= o.num_warps <= 32 or o.num_warps & (o.num_warps - 1):
        raise ValueError(f"num_warps must be a power of 2: 1, 2, 4, 8, 16 or 32, not {o.num_warps}")
    if o.num_stages < 0:
        raise ValueError(f"num_stages must be 0 or more, not {o.num_stages}")
    if not 1 <= o.num_ctas <= 16 or o.num_ctas & (o.num_ctas - 1):
        raise ValueError(f"num_ctas must be a power of 2: 1, 2, 4, 8 or 16, not {o.num_ctas}")
    if o.num_ctas > 1 and (capability < 90 or capability >= 120):
        raise ValueError(f"num_ctas > 1 requires NVIDIA SM90+ (Hopper) with clusters; sm_{capability} accepts num_ctas=1")
    if o.maxnreg is not None and not 16 <= o.maxnreg <= THREAD_REGISTERS:
        raise ValueError(f"maxnreg must be from 16 to {THREAD_REGISTERS} registers a thread, not {o.maxnreg}")
    if o.persistent not in (None, True, False):
        raise ValueError(f"persistent must be True, False, or None where that is up to the compiler, not {o.persistent!r}")
    if o.clc and capability < 100:
        raise ValueError(f"clc requires sm_100 or newer, not sm_{capability}")
    if o.warp_size != 32:
        raise ValueError(f"warp_size must be 32, not {o.warp_size}")
    minimum = arch_of(GPUTarget("cuda", capability, 32)).ptx
    if o.ptx_version is not None and not minimum <= o.ptx_version <= 99:
        raise ValueError(f"ptx_version must be {minimum} or newer for sm_{capability} (87 stands for PTX ISA 8.7), not {o.ptx_version}")
    if o.default_dot_input_precision not in o.allowed_dot_input_precisions:
        allowed = ", ".join(o.allowed_dot_input_precisions)
        raise ValueError(f"default_dot_input_precision must be one of {allowed}, not {o.default_dot_input_precision!r}")
    for name, path in o.extern_libs:
        if not os.path.isfile(path):
            raise ValueError(f"extern_libs must give files of LLVM bitcode; {name!r} names {path!r}, which is no file")


def ptx_version(options: NvidiaOptions) -> int:
    """The PTX ISA to write, 87 for 8.7."""
    return options.ptx_version or DEFAULT_PTX
