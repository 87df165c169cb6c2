"""The NVIDIA backend: ttir -> ttgir -> llir -> ptx -> cubin."""

from __future__ import annotations

import hashlib
from typing import Any

from tilewright import knobs
from tilewright.errors import OutOfResources, ToolchainError

from ..base import BaseBackend, Compilation, GPUTarget, Language, Stage
from .locate import find_ptxas, identity
from .options import IGNORED, NAMES, NvidiaOptions, parse_options, ptx_version
from .target import arch_of


class NvidiaBackend(BaseBackend):
    """Compiles for `GPUTarget("cuda", 80 | 86 | 89 | 90 | 100 | 120, 32)`."""

    binary_ext = "cubin"
    ir_levels = ("ttir", "ttgir", "llir", "ptx", "cubin")
    option_names = frozenset({*NAMES, *IGNORED})

    def __init__(self, target: GPUTarget):
        super().__init__(target)
        arch_of(target)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cuda"

    def hash(self) -> str:
        """The target and the ptxas that would be run (its file, not its version: finding that out costs 8 ms)."""
        try:
            tool = identity(find_ptxas())
        except ToolchainError:
            tool = "no ptxas"
        return f"{self.target.backend}:{self.target.arch}-{hashlib.sha256(tool.encode()).hexdigest()[:16]}"

    def parse_options(self, options: dict[str, Any]) -> NvidiaOptions:
        return parse_options(self.target, options)

    def add_stages(self, stages: dict[str, Stage], options: NvidiaOptions, language: Language = Language.TRITON) -> None:
        stages["ttir"] = _make_ttir
        stages["ttgir"] = _make_ttgir
        stages["llir"] = _make_llir
        stages["ptx"] = _make_ptx
        stages["cubin"] = _make_cubin

    def schedule_passes(self, options: NvidiaOptions) -> list:
        from . import pipeline

        return pipeline.ttir(options) + pipeline.scheduled(options)

    def prepare(self, compilation: Compilation) -> None:
        from . import ptxas

        compilation.resources["ptxas"] = ptxas.start(compilation.options)

    def finish(self, compilation: Compilation) -> None:
        job = compilation.resources.pop("ptxas", None)
        if job is not None:
            job.close()


def _run_passes(module: Any, entries: list) -> None:
    from mlir import ir

    from tilewright.dialects import context

    from ...passes import registry

    with context(), ir.Location.unknown():
        registry.run(module.operation, entries, verify=knobs.compilation.verify)


def _make_ttir(module: Any, metadata: dict[str, Any], c: Compilation) -> Any:
    from . import pipeline

    _run_passes(module, pipeline.ttir(c.options, calls=len(module.body.operations) > 1))
    return module


def _make_ttgir(module: Any, metadata: dict[str, Any], c: Compilation) -> Any:
    from . import pipeline

    _run_passes(module, pipeline.ttgir(c.options))
    return module


def _make_llir(module: Any, metadata: dict[str, Any], c: Compilation) -> str:
    """Lower to LLVM IR text; the passes leave shared memory in bytes and the final number of warps on the module."""
    from ...analysis.schedule import SCHEDULED
    from ...lowering.lower import lower_to_llvm, to_llvmir
    from . import pipeline, tensor_maps

    if SCHEDULED in module.operation.attributes:  # a schedule that was written by hand: see docs/hopper.md
        _run_passes(module, pipeline.expanded(c.options))
    _run_passes(module, pipeline.llir(c.options))
    attributes = module.operation.attributes
    for key, attribute in (("shared", "tilegpu.shared"), ("num_warps", "tilegpu.num_warps"), ("num_warps", "tilegpu.total_warps")):
        if attribute in attributes:
            metadata[key] = attributes[attribute].value
    limit = arch_of(c.target).max_shared
    if metadata["shared"] > limit:
        raise OutOfResources(metadata["shared"], limit, "shared memory")
    metadata["tma_descriptors"] = tensor_maps.descriptors(module.operation)
    metadata["grid_arguments"] = tensor_maps.grid_axes(module.operation)
    metadata["program_queue"] = tensor_maps.takes_queue(module.operation)
    metadata["programs_alike"] = tensor_maps.has_like_programs(module.operation)
    metadata["global_scratch_size"] = tensor_maps.scratch_bytes(module.operation)
    metadata["global_scratch_align"] = tensor_maps.SCRATCH_ALIGNMENT
    lowered = c.timed("lowering", lower_to_llvm, module, c.target, c.options)
    return c.timed("translation", to_llvmir, lowered, not knobs.compilation.disable_line_info)


def _make_ptx(ir: str, metadata: dict[str, Any], c: Compilation) -> str:
    from . import toolchain

    o: NvidiaOptions = c.options
    return toolchain.llvm_ir_to_ptx(
        ir, metadata["name"], o.capability, ptx_version(o), reflect_ftz=o.enable_reflect_ftz, libraries=o.extern_libs
    )


def _make_cubin(ptx: str, metadata: dict[str, Any], c: Compilation) -> bytes:
    from . import ptxas, toolchain

    metadata["name"] = toolchain.entry_name(ptx)
    cubin = c.resources["ptxas"].assemble(ptx, c.idle)
    metadata["n_regs"] = cubin.n_regs
    metadata["n_spills"] = cubin.stack // 4
    metadata["n_max_threads"] = ptxas.max_threads(cubin.n_regs)
    metadata["ptxas_warnings"] = tuple(cubin.warnings)
    return cubin.binary
