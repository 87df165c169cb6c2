"""From the layout level to LLVM IR text.

`lower_to_llvm` builds a new module of `llvm` and `nvvm` ops from a `ttgir` module whose shared memory is allocated and whose barriers
are placed; the old module stays as it is. `to_llvmir` prints the result as LLVM IR.
"""

from functools import lru_cache
from typing import Any

from mlir import ir
from mlir.dialects import llvm
from mlir.passmanager import PassManager

from tilewright.compiler.passes.building import collect, walk
from tilewright.dialects import context

from . import (  # noqa: F401  (importing a family of rules registers it)
    async_copy,
    atomics,
    cluster,
    control_flow,
    convert_layout,
    elementwise,
    float_convert,
    fma_dot,
    function,
    memory,
    mma,
    program,
    reduce,
    roles,
    scan,
    shape,
    shared_memory,
    special,
    sync,
    tensor_map,
    tma,
    wgmma,
)
from .context import ModuleState, TargetFacts
from .part_gather import is_pushed
from .types import types

DATA_LAYOUT = "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
TRIPLE = "nvptx64-nvidia-cuda"


def lower_to_llvm(module: ir.Module, target: Any, options: Any) -> ir.Module:
    """Return a new module in the `llvm` dialect that holds every function of `module`.

    Of `options` it reads `capability` (90 for sm_90), `num_warps`, `num_ctas`, `maxnreg` and `enable_fp_fusion`; what the module's own
    attributes say goes first.
    """
    with context(), ir.Location.unknown():
        operation = module.operation
        attrs = operation.attributes
        facts = TargetFacts(
            arch=options.capability,
            num_warps=_module_int(attrs, "tilegpu.num_warps", options.num_warps),
            threads_per_warp=_module_int(attrs, "tilegpu.threads_per_warp", target.warp_size),
            num_ctas=_module_int(attrs, "tilegpu.num_ctas", options.num_ctas),
            fp_fusion=options.enable_fp_fusion is not False,
            total_warps=_module_int(attrs, "tilegpu.total_warps", 0),
        )
        lowered = ir.Module.create(loc=operation.location)
        lowered.operation.attributes["llvm.data_layout"] = ir.StringAttr.get(DATA_LAYOUT)
        lowered.operation.attributes["llvm.target_triple"] = ir.StringAttr.get(TRIPLE)
        state = ModuleState(lowered.body, facts, operation.location)
        if facts.num_ctas > 1:
            state.has_exchanges = not all(map(is_pushed, collect(operation, "tile.exchange")))
            state.has_meetings = any(op.name == "tile.barrier" or op.name.startswith("tile.atomic") for op in walk(operation))
        launch = _launch_attributes(facts, options, _module_int(attrs, "tilegpu.min_ctas", 0))
        for op in list(module.body.operations):
            function.lower_function(state, op.operation, launch)
        return lowered


def to_llvmir(module: ir.Module, debug_info: bool = True) -> str:
    """Return the LLVM IR of a module in the `llvm` dialect, with line information if `debug_info`."""
    with context():
        _last_passes(debug_info).run(module.operation)
        if debug_info:
            _hide_helpers(module)
        return llvm.translate_module_to_llvmir(module.operation)


@lru_cache(maxsize=2)
def _last_passes(debug_info: bool) -> PassManager:
    """The passes in front of the translation, kept: a pass builds its set of patterns when it first runs.

    Debug information is what PTX needs for line tables, `.loc` and `.file`, without sections of DWARF: two thirds as many lines of PTX for
    a softmax.
    """
    scopes = ["ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly}"] if debug_info else []
    manager = PassManager.parse(f"builtin.module({','.join(['convert-nvvm-to-llvm', *scopes])})")
    manager.enable_verifier(False)
    return manager


def _hide_helpers(module: ir.Module) -> None:
    """Take the line information from inlined helper functions: LLVM then gives their code the line of the call."""
    nowhere = ir.Location.unknown()
    for op in module.body.operations:
        if "always_inline" in op.attributes:
            op.operation.location = nowhere


def _module_int(attrs: ir.OpAttributeMap, name: str, default: int) -> int:
    return ir.IntegerAttr(attrs[name]).value if name in attrs else default


def _launch_attributes(facts: TargetFacts, options: Any, min_ctas: int) -> dict[str, ir.Attribute]:
    """What the driver and ptxas must know of a kernel: its block size, clusters and register limit; and how many CTAs a multiprocessor must
    hold, if that is not 0."""
    t = types()
    attrs = {"nvvm.kernel": t.unit, "nvvm.reqntid": t.i32_array(facts.threads, 1, 1)}
    if facts.total_warps:
        # Without it ptxas does not know the registers at launch, and ignores that roles change them.
        attrs["nvvm.minctasm"] = t.int_attr(32, 1)
    elif min_ctas:
        attrs["nvvm.minctasm"] = t.int_attr(32, min_ctas)
    if facts.num_ctas > 1:
        attrs["nvvm.cluster_dim"] = t.i32_array(facts.num_ctas, 1, 1)
    if getattr(options, "maxnreg", None):
        attrs["nvvm.maxnreg"] = t.int_attr(32, options.maxnreg)
    return attrs
