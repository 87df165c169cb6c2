"""The passes of each stage, in order: this file is the documentation of the NVIDIA pipeline.

An entry is the name of one of our passes, a tuple (name, options), or text in MLIR's pipeline syntax for upstream passes.
"""

from __future__ import annotations

from ...multiprocessor import REGISTERS, THREAD_REGISTERS
from ...passes.registry import Entry
from .options import NvidiaOptions
from .target import ARCHS


def _target(options: NvidiaOptions) -> str:
    return f"cuda:{options.capability}"


def ttir(options: NvidiaOptions, calls: bool = True) -> list[Entry]:
    """Clean up what the front end made: one function, no calls, no dead code; the part of one CTA; only dots that the target computes;
    plain pointers, and the descriptors that TMA takes. Without `calls`, only what inlining does besides is left of it: it takes 0.5 ms to
    begin."""
    return [
        *(["inline", "symbol-dce"] if calls else ["canonicalize"]),
        *([("tile-split-over-ctas", {"target": _target(options), "num_ctas": options.num_ctas})] if options.num_ctas > 1 else []),
        *([(f"tile-{where}-descriptors", {"target": _target(options)}) for where in ("device", "host")] if options.tma else []),
        "tile-lower-descriptors",
        "canonicalize",
        "cse",
        ("tile-decompose-dots", {"target": _target(options)}),
        "tile-unroll-loops",
        "tile-scalarize-pointers",
        *([("tile-pointer-boxes", {"target": _target(options), "num_warps": options.num_warps})] if options.tma else []),
        "tile-order-programs",
        *([("tile-loop-programs", _programs(options))] if _may_loop(options) else []),
        "loop-invariant-code-motion",
        *(["tile-hoist-loads"] if _may_loop(options) else []),
        "cse",
    ]


def _may_loop(options: NvidiaOptions) -> bool:
    """Whether CTAs may work on several programs: roles are what that is for, and cooperative grids are the user's own."""
    may = options.tma and _has_roles(options) and not options.launch_cooperative_grid
    return may and options.persistent is not False


def _programs(options: NvidiaOptions) -> dict[str, str | int | bool]:
    return {"target": _target(options), "num_warps": options.num_warps, "num_ctas": options.num_ctas, "force": bool(options.persistent)}


def ttgir(options: NvidiaOptions) -> list[Entry]:
    """Give every tensor a layout, choose matrix instructions, pipeline loops."""
    return scheduled(options) + expanded(options)


def scheduled(options: NvidiaOptions) -> list[Entry]:
    """Up to the schedule: layouts, matrix instructions, and what is to become of each loop, written on its operations."""
    return [
        (
            "tilegpu-assign-layouts",
            {
                "target": _target(options),
                "num_warps": options.num_warps,
                "threads_per_warp": options.warp_size,
                "num_ctas": options.num_ctas,
            },
        ),
        "tilegpu-lower-dots",
        "tilegpu-order-products",
        "tilegpu-place-descriptors",
        "tilegpu-late-sums",
        ("tilegpu-schedule", {**_room(options), **_registers(options), "roles": _has_roles(options)}),
    ]


def expanded(options: NvidiaOptions) -> list[Entry]:
    """Carry the schedule out."""
    return [
        *([("tilegpu-warp-specialize", _room(options))] if _has_roles(options) else []),
        ("tilegpu-pipeline", {**_room(options), **_registers(options)}),
        ("tilegpu-prefetch-loads", {"num_warps": options.num_warps, "num_stages": options.num_stages}),
        "tilegpu-lower-tma",
        ("tilegpu-stage-stores", {"shared_limit": ARCHS[options.capability].max_shared}),
        "tilegpu-early-products",
        "tilegpu-overlap-wgmma",
        *(["tilegpu-overlap-programs"] if _overlaps_programs(options) else []),
        "tilegpu-version-masks",
        "tilegpu-defer-stores",
        *(["tilegpu-stagger-ends"] if _has_roles(options) else []),
        "tilegpu-start-accumulators",
        "loop-invariant-code-motion",
        "canonicalize",
        "cse",
    ]


def _overlaps_programs(options: NvidiaOptions) -> bool:
    """Whether it is worth a fifth more of ptxas's time (attention's): CTAs of a cluster wait for each other where a program ends."""
    return _has_roles(options) and (options.num_ctas > 1 or options.persistent is True)


def _room(options: NvidiaOptions) -> dict[str, int]:
    return {"num_stages": options.num_stages, "shared_limit": ARCHS[options.capability].max_shared}


def _registers(options: NvidiaOptions) -> dict[str, int]:
    return {"maxnreg": options.maxnreg or min(THREAD_REGISTERS, REGISTERS // (options.warp_size * options.num_warps))}


def _has_roles(options: NvidiaOptions) -> bool:
    """Whether there are wgmma, and registers that warps can hand to each other: with `maxnreg` every thread has as many, and a role that
    asked for more would wait forever."""
    return options.capability == 90 and options.maxnreg is None


def llir(options: NvidiaOptions) -> list[Entry]:
    """Place shared memory and barriers, then lower to the LLVM dialect."""
    limited = options.maxnreg is None and options.num_ctas == 1
    return [
        "tilegpu-allocate-shared",
        "tilegpu-insert-barriers",
        *(["tilegpu-limit-registers"] if limited else []),
    ]
