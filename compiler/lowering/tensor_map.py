"""`tile.make_descriptor` with `tile.slot`: a tensor map that the kernel writes (`tile-device-descriptors`).

Before: the op has `tilegpu.offset`, 128 bytes of shared memory for its own; no TMA access through what it made before is under way.
After: its value is the generic address of the tensor map, in the CTA's part of the kernel's scratch memory. One warp fills it in shared
memory, copies it from there, and acquires it for TMA; then all threads go on.
"""

from functools import partial

from mlir import ir

from tilewright.compiler.encoding import shared_of
from tilewright.compiler.layouts.descriptors import tma_boxes
from tilewright.dialects import tile, tilegpu

from .asm import inline_asm
from .branches import when
from .context import LoweringContext
from .registry import rule
from .shared_memory import element_bytes

MAP_BYTES = 128
#: What `tensormap.replace` calls the elements that the host calls by these names.
ELEMENTS = {"u8": 0, "u16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5, "f16": 6, "f32": 7, "f64": 9, "bf16": 10, "tf32": 11}
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_SLOT, _ELEMENT, _SCRATCH = "tile.slot", "tile.element", "tile.scratch"
#: A descriptor that is no tensor map but a pointer (`passes.bulk_vectors`).
BULK = "tilegpu.bulk"


def scratch_bytes(op: ir.Operation) -> int:
    """The bytes of shared memory that making a descriptor takes."""
    return MAP_BYTES if _SLOT in op.attributes else 0


@rule("tile.make_descriptor")
def make_descriptor(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    if BULK in op.attributes:
        return [ctx.value(op.operands[0])]
    if _SLOT not in op.attributes:
        raise ValueError("a descriptor of the kernel's own was not lowered: run tile-lower-descriptors first")
    if ctx.role is not None:
        raise ValueError("a tensor map cannot be made inside a role of the warps")
    place = _place(ctx, op)
    shared = ctx.scratch(op)
    when(ctx, _is_zero(ctx, ctx.warp_id), partial(_fill, ctx, op, shared, place))
    ctx.barrier()
    return [ctx.emit("llvm.addrspacecast", ctx.types.ptr, (place,))]


def _is_zero(ctx: LoweringContext, value: ir.Value) -> ir.Value:
    return ctx.emit("llvm.icmp", ctx.types.i1, (value, ctx.i32(0)), ctx.types.icmp("eq"))


def _place(ctx: LoweringContext, op: ir.Operation) -> ir.Value:
    """The tensor map of this CTA, in global memory."""
    t = ctx.types
    function = op.parent.operation
    while function.name != "func.func":
        function = function.parent.operation
    attributes = [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]
    number = next(i for i, attribute in enumerate(attributes) if _SCRATCH in attribute)
    size = ir.IntegerAttr(attributes[number][_SCRATCH]).value

    def cta() -> ir.Value:
        index = None
        for axis in "zyx":
            here = ctx.emit(f"nvvm.read.ptx.sreg.ctaid.{axis}", t.i32)
            if index is not None:
                count = ctx.emit(f"nvvm.read.ptx.sreg.nctaid.{axis}", t.i32)
                here = ctx.emit("llvm.add", t.i32, (ctx.emit("llvm.mul", t.i32, (index, count)), here))
            index = here
        return ctx.emit("llvm.mul", t.i64, (ctx.emit("llvm.zext", t.i64, (index,)), ctx.constant(t.i64, size)))

    offset = ctx.once("scratch of the CTA", cta)
    base = ctx.value(function.regions[0].blocks[0].arguments[number])
    own = ctx.emit("llvm.getelementptr", base.type, (base, offset), t.gep_attrs(t.i8))
    slot = MAP_BYTES * ir.IntegerAttr(op.attributes[_SLOT]).value
    return ctx.emit("llvm.getelementptr", base.type, (own,), t.const_gep_attrs(t.i8, slot)) if slot else own


def _fill(ctx: LoweringContext, op: ir.Operation, shared: ir.Value, place: ir.Value) -> None:
    """Write the tensor map with the threads of one warp."""
    word = ctx.emit("llvm.getelementptr", shared.type, (shared, ctx.lane_id), ctx.types.gep_attrs(ctx.types.i32))
    ctx.emit_void("llvm.store", (ctx.i32(0), word))
    inline_asm(ctx, "bar.warp.sync -1;", "~{memory}", (), None)
    text, constraints, operands = replacements(ctx, op)
    when(ctx, _is_zero(ctx, ctx.lane_id), lambda: inline_asm(ctx, text, constraints, (shared, *operands), None))
    text = (
        "bar.warp.sync -1; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128; "
        "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;"
    )
    inline_asm(ctx, text, "l,r,~{memory}", (place, shared), None)


def replacements(ctx: LoweringContext, op: ir.Operation) -> tuple[str, str, list[ir.Value]]:
    """(instructions, constraints, operands after the address) that set the fields of a cleared tensor map; dimensions count from the
    innermost one."""
    t = ctx.types
    shape, element, layout = tile.desc_info(op.results[0].type)
    size = element_bytes(element)
    boxes = tma_boxes(shared_of(tilegpu.buffer_type(shape, element, layout)), 8 * size)
    base, *rest = (ctx.value(v) for v in op.operands)
    rank = len(shape)
    extents, strides = rest[:rank][::-1], rest[rank : 2 * rank - 1][::-1]
    nan = "padding" in op.attributes and "nan" in str(op.attributes["padding"])
    operands = [base, *extents, *(ctx.emit("llvm.mul", t.i64, (s, ctx.constant(t.i64, size))) for s in strides)]
    lines = [("global_address", "b64", "$1"), ("rank", "b32", str(rank - 1))]
    for dim in range(rank):
        lines.append(("box_dim", "b32", f"{dim}, {boxes.box[rank - 1 - dim]}"))
        lines.append(("global_dim", "b32", f"{dim}, ${2 + dim}"))
        lines.append(("element_stride", "b32", f"{dim}, 1"))
    lines += [("global_stride", "b64", f"{dim}, ${2 + rank + dim}") for dim in range(rank - 1)]
    lines += [
        ("elemtype", "b32", str(ELEMENTS[ir.StringAttr(op.attributes[_ELEMENT]).value])),
        ("interleave_layout", "b32", "0"),
        ("swizzle_mode", "b32", str(SWIZZLES[boxes.swizzle])),
        ("fill_mode", "b32", str(int(nan))),
    ]
    text = " ".join(f"tensormap.replace.tile.{field}.shared::cta.b1024.{bits} [A], {value};" for field, bits, value in lines)
    constraints = ",".join(["r", "l", *["r"] * rank, *["l"] * (rank - 1), "~{memory}"])
    return f"{{ .reg .b64 A; cvt.u64.u32 A, $0; {text} }}", constraints, operands
