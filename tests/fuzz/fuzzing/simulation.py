"""Running what the lowering makes of a program in the simulator of tests/compile: numerics of the compiler without a GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.compiler.backends import GPUTarget, make_backend
from tilewright.compiler.backends.base import Compilation
from tilewright.compiler.backends.nvidia import backend as nvidia
from tilewright.compiler.backends.nvidia import pipeline
from tilewright.compiler.lowering.lower import lower_to_llvm
from tilewright.dialects import context
from tilewright.errors import TritonError

from .compare import Results
from .execution import Failure, Unsupported, source_of
from .program import Array

sys.path.append(str(Path(__file__).resolve().parents[2] / "compile"))
from . import simulated_ops

CAPABILITY = 90


def run(source: str, path: str, inputs: Results) -> Results:
    """What the kernel of a program leaves in the arrays, its programs run one after another.

    Raises Unsupported for what the simulator does not know.
    """
    target = GPUTarget("cuda", CAPABILITY, 32)
    backend = make_backend(target)
    src, options = source_of(source, path, backend)
    parsed = backend.parse_options(options)
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
    arguments = _arguments(src, results)
    with context():
        simulator = simulated_ops.Machine(lowered, 32 * parsed.num_warps)
        for y, x in np.ndindex(*reversed((*_grid(src), 1)[:2])):
            simulator.program = (x, y, 0)
            simulator.grid = (*_grid(src), 1, 1)[:3]
            try:
                simulator.launch(src.name, *arguments)
            except KeyError as e:
                raise Unsupported(f"the simulator does not know {e}") from e
            except ValueError as e:
                if "does not know" in str(e):
                    raise Unsupported(str(e)) from e
                raise Failure("simulated access", str(e)) from e
    return results


def _arguments(src: Any, results: Results) -> list[Any]:
    """What is passed to the lowered kernel: all that is no constant, in the order of the parameters."""
    values = src.fn.__globals__["ARGUMENTS"]
    names = [name for name in src.fn.arg_names if src.signature[name] != "constexpr"]
    return [results[name] if isinstance(values[name], Array) else values[name] for name in names]


def _grid(src: Any) -> tuple[int, ...]:
    return src.fn.__globals__["GRID"]
