"""Kernels written at the layout level, and what they become: for tests of the lowering alone."""

from collections.abc import Mapping
from types import SimpleNamespace

from mlir import ir

from tilewright.backends.compiler import GPUTarget
from tilewright.compiler.backends.nvidia import ptxas, toolchain
from tilewright.compiler.backends.nvidia.options import parse_options, ptx_version
from tilewright.compiler.encoding import encode
from tilewright.compiler.layouts import LinearLayout
from tilewright.compiler.lowering import lower, scratch
from tilewright.dialects import context


def build(arguments: str, body: str, num_warps: int = 4, **layouts: LinearLayout) -> str:
    """Text of a module with one kernel `k`; `#name` in it is the layout of that name."""
    with context():
        aliases = "\n".join(f"#{name} = {encode(layout)}" for name, layout in layouts.items())
    return f"""{aliases}
module attributes {{tilegpu.num_warps = {num_warps} : i32, tilegpu.num_ctas = 1 : i32, tilegpu.threads_per_warp = 32 : i32}} {{
  func.func public @k({arguments}) {{
{body}
    func.return
  }}
}}
"""


def lowered(source: str, arch: int = 90) -> ir.Module:
    """The module of LLVM ops of a kernel, verified; scratch memory is placed end to end."""
    with context():
        module = ir.Module.parse(source)
        place_scratch(module.operation)
        assert module.operation.verify()
        target = GPUTarget("cuda", arch, 32)
        result = lower.lower_to_llvm(module, target, parse_options(target, {}))
        assert result.operation.verify()
        return result


def place_scratch(root: ir.Operation) -> int:
    """Give each op that needs scratch its own; returns the bytes taken."""
    top = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal top
        need = scratch.scratch_bytes(op)
        if need:
            op.attributes["tilegpu.offset"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), top)
            top += need
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return top


def llvm_ir(source: str, arch: int = 90) -> str:
    """LLVM IR of a kernel."""
    return lower.to_llvmir(lowered(source, arch))


def ptx(source: str, arch: int = 90) -> str:
    """PTX of a kernel."""
    options = parse_options(GPUTarget("cuda", arch, 32), {})
    return toolchain.llvm_ir_to_ptx(llvm_ir(source, arch), "k", arch, ptx_version(options), reflect_ftz=True)


def cubin(source: str, arch: int = 90, **options: Mapping) -> SimpleNamespace:
    """What ptxas makes of a kernel, with its PTX as `.ptx`. Raises PTXASError if ptxas rejects it."""
    text = ptx(source, arch)
    job = ptxas.start(parse_options(GPUTarget("cuda", arch, 32), options))
    try:
        return SimpleNamespace(ptx=text, **vars(job.assemble(text)))
    finally:
        job.close()
