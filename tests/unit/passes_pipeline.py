"""Runs kernels through the passes of the NVIDIA backend, for the tests of passes."""

from __future__ import annotations

from frontend_build import module as build
from mlir import ir

from tilewright.compiler.backends.base import GPUTarget
from tilewright.compiler.backends.nvidia import pipeline
from tilewright.compiler.backends.nvidia.options import parse_options
from tilewright.compiler.passes import registry
from tilewright.dialects import context


def ttgir(function, types, capability, num_warps=4, num_stages=3, upto=None, aligned=True, tma=True, **constants):
    """Return a kernel's module after the ttir and ttgir passes (or after the last pass named `upto`), verified after each.

    `aligned`: pointers and integers are divisible by 16.
    """
    names = [p.name for p in function.params if p.name not in constants]
    attrs = {(function.arg_names.index(n),): [["tt.divisibility", 16]] for n, t in zip(names, types, strict=True) if t[0] in "*i"}
    options = parse_options(GPUTarget("cuda", capability, 32), {"num_warps": num_warps, "num_stages": num_stages, "tma": tma})
    module = build(function, types, attrs if aligned else None, **constants)
    passes = pipeline.ttir(options) + pipeline.ttgir(options)
    if upto is not None:
        last = max(i for i, entry in enumerate(passes) if upto in (entry, entry[0]))
        passes = passes[: last + 1]
    with context(), ir.Location.unknown():
        registry.run(module.operation, passes, verify=True)
    return module
