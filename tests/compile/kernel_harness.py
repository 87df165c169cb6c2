"""Runs a `@jit` kernel on the test machine, compiled by all passes of a target, its tensor maps included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from simt import Simulator
from simt_tma import KINDS, TensorMap

from tilewright.compiler.backends import GPUTarget, make_backend
from tilewright.compiler.backends.base import Compilation
from tilewright.compiler.backends.nvidia import backend as nvidia
from tilewright.compiler.backends.nvidia import pipeline, tensor_maps
from tilewright.compiler.frontend import build_module
from tilewright.compiler.lowering.lower import lower_to_llvm
from tilewright.dialects import context
from tilewright.runtime.tensor_maps import TensorMapError, TensorMaps

WARPGROUP = 128
#: CTAs that run at a time, for kernels that loop over programs.
_RESIDENT = 2
#: Whether kernels that may take programs from a queue are given its counter.
_QUEUE = True


def passes_of(
    kernel: Any, signature: dict[str, str], constants: dict[str, Any], arch: int = 90, unaligned: Sequence[str] = (), **options: Any
) -> tuple[Any, Any]:
    """(module with shared memory and barriers placed, options). Pointers and integers of the signature but the `unaligned` ones count as
    multiples of 16."""
    target = GPUTarget("cuda", arch, 32)
    backend = make_backend(target)
    parsed = backend.parse_options(options)
    names = kernel.arg_names
    full = {name: "constexpr" if name in constants else signature[name] for name in names}
    aligned = [name not in unaligned and (full[name] == "i32" or full[name].startswith("*")) for name in names]
    attrs = {(i,): [["tt.divisibility", 16]] for i, is_aligned in enumerate(aligned) if is_aligned}
    module = build_module(kernel, full, constants, attrs, parsed, target)
    compilation = Compilation(target, parsed, {}, lambda: None)
    nvidia._make_ttir(module, {}, compilation)
    nvidia._make_ttgir(module, {}, compilation)
    nvidia._run_passes(module, pipeline.llir(parsed))
    return module, parsed


def run_kernel(
    kernel: Any,
    grid: tuple[int, ...],
    arguments: dict[str, Any],
    constants: dict[str, Any],
    types: dict[str, str],
    seed: int | None = None,
    **options: Any,
) -> bool:
    """Run every program of the grid in turn; return whether the kernel took tensor maps: like the runtime, this compiles it without TMA
    for arguments that need that. `arguments` in the order of the kernel's parameters; arrays are changed in place. `types` is the
    signature of the arrays and whatever else is no i32. With a `seed`, or roles, warpgroups run apart, in turns that it
    chooses."""
    signature = {name: types.get(name, "i32") for name in arguments}
    unaligned = [name for name, value in arguments.items() if isinstance(value, int) and value % 16]
    module, parsed = passes_of(kernel, signature, constants, unaligned=unaligned, **options)
    maps = TensorMaps(kernel.__name__, tensor_maps.descriptors(module.operation), [*signature.values()], [*signature], _encode)
    lowered = lower_to_llvm(module, GPUTarget("cuda", parsed.capability, 32), parsed)
    with context():
        attributes = module.operation.attributes
        roles = "tilegpu.total_warps" in attributes
        warps = attributes["tilegpu.total_warps"].value if roles else parsed.num_warps
        part = None if seed is None and not roles else min(WARPGROUP, 32 * warps)
        simulator = Simulator(lowered, 32 * warps, part=part, seed=seed or 0, ctas=parsed.num_ctas)
        simulator.grid = (*grid, 1, 1)[:3]
        size = tensor_maps.scratch_bytes(module.operation) * parsed.num_ctas * int(np.prod(grid))
        scratch = [np.zeros(size, np.uint8)] if size else []
        axes = tensor_maps.grid_axes(module.operation)
        sizes = [simulator.grid[axis] for axis in axes]
        if axes:
            simulator.grid = (min(_RESIDENT, int(np.prod(grid))), 1, 1)
        counter = [np.zeros(1, np.int32) if _QUEUE else 0] if tensor_maps.takes_queue(module.operation) else []
        for z, y, x in np.ndindex(*simulator.grid[::-1]):
            simulator.program = (x, y, z)
            try:
                simulator.launch(
                    kernel.__name__, *arguments.values(), *scratch, maps=lambda values: list(maps.of(values)), grid=sizes, counter=counter
                )
            except TensorMapError:
                return run_kernel(kernel, grid, arguments, constants, types, seed, **{**options, "tma": False})
        assert not np.any(counter), "the counter of a queue is not zero behind the launch"
    return bool(maps.descriptors)


def _encode(descriptor: dict[str, Any], base: int, shape: list[int], strides: list[int]) -> TensorMap:
    size = np.dtype(KINDS[descriptor["element"]]).itemsize
    return TensorMap(base, shape, [*strides, size], descriptor["box"], descriptor["swizzle"], descriptor["element"], descriptor["padding"])
