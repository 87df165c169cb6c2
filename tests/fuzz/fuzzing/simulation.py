"""Running what the lowering makes of a program in the simulator of tests/compile: numerics of the compiler without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import simt_tma

from tilewright.compiler.backends import GPUTarget, make_backend
from tilewright.compiler.backends.base import Compilation
from tilewright.compiler.backends.nvidia import backend as nvidia
from tilewright.compiler.backends.nvidia import pipeline, tensor_maps
from tilewright.compiler.lowering.lower import lower_to_llvm
from tilewright.dialects import context
from tilewright.errors import TritonError
from tilewright.runtime.tensor_maps import TensorMapError, TensorMaps

from . import simulated_ops
from .compare import Results
from .execution import Failure, Unsupported, source_of, suits
from .program import Array

_WARPGROUP = 128
#: CTAs that run at a time.
_RESIDENT = 2


def run(source: str, path: str, inputs: Results, capability: int, tma: bool = True) -> Results:
    """What the kernel of a program leaves in the arrays, compiled for a capability, its programs run one after another. As at run time,
    it is compiled without `tma` if the arrays do not suit that.

    Raises Unsupported for what the simulator or the target does not know.
    """
    if not suits(source, capability):
        raise Unsupported(f"the target {capability} has not all types of the program")
    target = GPUTarget("cuda", capability, 32)
    backend = make_backend(target)
    src, options = source_of(source, path, backend)
    parsed = backend.parse_options(options if tma else {**options, "tma": False})
    compilation = Compilation(target, parsed, {}, lambda: None)
    try:
        module = src.make_ir(target, parsed)
        nvidia._make_ttir(module, {}, compilation)
        nvidia._make_ttgir(module, {}, compilation)
        nvidia._run_passes(module, pipeline.llir(parsed))
        lowered = lower_to_llvm(module, target, parsed)
    except TritonError as e:
        raise Failure("compile error", f"{type(e).__name__}: {e}") from e
    results = {name: bits.copy() for name, bits in inputs.items()}
    arguments, kinds = _arguments(src, results)
    scratch = tensor_maps.scratch_bytes(module.operation) * parsed.num_ctas * int(np.prod(_grid(src)))
    arguments += [np.zeros(scratch, np.uint8)] if scratch else []
    maps = TensorMaps(src.name, tensor_maps.descriptors(module.operation), [*kinds.values()], [*kinds], _tensor_map)
    with context():
        # Roles wait for each other: their warpgroups run apart.
        roles = module.operation.attributes["tilegpu.total_warps"].value if "tilegpu.total_warps" in module.operation.attributes else 0
        threads = 32 * (roles or parsed.num_warps)
        simulator = simulated_ops.Machine(lowered, threads, part=_WARPGROUP if roles else None, ctas=parsed.num_ctas)
        simulator.grid = (*_grid(src), 1, 1)[:3]
        sizes = [simulator.grid[axis] for axis in tensor_maps.grid_axes(module.operation)]
        counter = [np.zeros(1, np.int32)] if tensor_maps.takes_queue(module.operation) else []
        if sizes:  # CTAs loop over programs
            simulator.grid = (min(_RESIDENT, int(np.prod(simulator.grid))), 1, 1)
        for y, x in np.ndindex(*reversed(simulator.grid[:2])):
            simulator.program = (x, y, 0)
            try:
                simulator.launch(src.name, *arguments, maps=lambda values: list(maps.of(values)), grid=sizes, counter=counter)
            except KeyError as e:
                raise Unsupported(f"the simulator does not know {e}") from e
            except TensorMapError:
                return run(source, path, inputs, capability, tma=False)
            except ValueError as e:
                if "does not know" in str(e):
                    raise Unsupported(str(e)) from e
                raise Failure("simulated access", str(e)) from e
    return results


def _arguments(src: Any, results: Results) -> tuple[list[Any], dict[str, Any]]:
    """(what is passed to the lowered kernel, its types by name): all that is no constant, in the order of the parameters."""
    values = src.fn.__globals__["ARGUMENTS"]
    names = [name for name in src.fn.arg_names if src.signature[name] != "constexpr"]
    arguments = [results[name] if isinstance(values[name], Array) else values[name] for name in names]
    return arguments, {name: src.signature[name] for name in names}


def _tensor_map(descriptor: dict[str, Any], base: int, shape: list[int], strides: list[int]) -> simt_tma.TensorMap:
    size = np.dtype(simt_tma.KINDS[descriptor["element"]]).itemsize
    places = [*strides, size]
    return simt_tma.TensorMap(base, shape, places, descriptor["box"], descriptor["swizzle"], descriptor["element"], descriptor["padding"])


def _grid(src: Any) -> tuple[int, ...]:
    return src.fn.__globals__["GRID"]
