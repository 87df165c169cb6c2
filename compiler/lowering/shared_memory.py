"""Buffers in shared memory: allocation, slots, views, loads and stores.

Before: every `tilegpu.local_alloc` has `tilegpu.offset`, in bytes from the start of the CTA's shared memory, aligned to
`buffer_alignment`; barriers separate threads that exchange data. After: a buffer is the address of its first element (ptr<3>), and each
access is as wide as the buffer's and the tensor's layouts allow, by ldmatrix and stmatrix where these move more.
"""

from functools import cache

from mlir import ir

from tilewright.compiler.encoding import shared_of
from tilewright.compiler.layouts import SharedLayout, shared_columns
from tilewright.dialects import tilegpu

from . import linear, shared_access, vectors
from .context import LoweringContext
from .matrix_loads import is_fused
from .registry import rule
from .types import scalar_type, types

#: TMA, wgmma and our swizzles take address bits up to 1 KiB into account.
SWIZZLE_ALIGNMENT = 1024
#: TMA copies to and from multiples of 128 bytes.
PLAIN_ALIGNMENT = 128
MBARRIER_BYTES = 8


@cache
def buffer_alignment(buffer_type: ir.Type) -> int:
    """Return the alignment in bytes of a buffer and of each of its slots: 1024 where the layout is swizzled, else 128; 8 of mbarriers."""
    if is_mbarrier(buffer_type):
        return MBARRIER_BYTES
    linear_map = shared_of(buffer_type).linear
    swizzled = any(sum(1 for c in coords if c) > 1 for coords in linear_map.bases["offset"])
    return SWIZZLE_ALIGNMENT if swizzled else PLAIN_ALIGNMENT


@cache
def slot_bytes(buffer_type: ir.Type) -> int:
    """Return the distance in bytes of two slots of a buffer: its elements with padding, aligned."""
    if is_mbarrier(buffer_type):
        return MBARRIER_BYTES
    size = shared_of(buffer_type).allocation_elements() * element_bytes(tilegpu.buffer_info(buffer_type)[1])
    alignment = buffer_alignment(buffer_type)
    return -(-size // alignment) * alignment


@cache
def buffer_bytes(buffer_type: ir.Type) -> int:
    """Return the bytes of shared memory that a buffer takes with all its slots."""
    return slot_bytes(buffer_type) * max(1, tilegpu.buffer_info(buffer_type)[3])


def is_mbarrier(buffer_type: ir.Type) -> bool:
    """Whether a buffer holds single 64-bit words, as mbarriers are: its slots lie 8 bytes apart."""
    shape, element, _, _ = tilegpu.buffer_info(buffer_type)
    return tuple(shape) == (1,) and element == types().i64


@cache
def element_bytes(element: ir.Type) -> int:
    """Return the bytes of one element in memory; an i1 takes one."""
    return max(8, types().width(scalar_type(element))) // 8


@rule("tilegpu.local_alloc")
def local_alloc(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    base = ctx.scratch(op)
    if len(op.operands):
        store_tensor(ctx, ctx.operands(op)[0], op.operands[0], base, shared_of(op.results[0].type))
    return [base]


@rule("tilegpu.slot")
def slot(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    base, index = ctx.operands(op)
    offset = ctx.emit("llvm.mul", ctx.types.i32, (index, ctx.i32(slot_bytes(op.operands[0].type))))
    return [ctx.emit("llvm.getelementptr", ctx.types.ptr3, (base, offset), ctx.types.gep_attrs(ctx.types.i8))]


@rule("tilegpu.view")
def view(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (base,) = ctx.operands(op)
    if "offsets" not in op.attributes:
        return [base]
    offset = view_offset(op.operands[0].type, op.results[0].type, tuple(ir.DenseI32ArrayAttr(op.attributes["offsets"])))
    if offset == 0:
        return [base]
    return [ctx.emit("llvm.getelementptr", ctx.types.ptr3, (base,), ctx.types.const_gep_attrs(ctx.types.i8, offset))]


@cache
def view_offset(buffer_type: ir.Type, view_type: ir.Type, offsets: tuple[int, ...]) -> int:
    """Return the byte offset of a sub-block view in its buffer.

    Raises ValueError if the block cuts through a swizzle, so that its elements are no fixed offset away from the buffer's.
    """
    shared = shared_of(buffer_type)
    columns = shared.address_columns()
    start = 0
    inside = 0
    layout = shared.linear
    block = tilegpu.buffer_info(view_type)[0]
    packed = layout.pack(offsets)
    for bit, column in enumerate(columns):
        if packed >> bit & 1:
            start ^= column
    for dim, size in enumerate(block):
        for i in range(size.bit_length() - 1):
            inside |= columns[layout.shifts[dim] + i]
    if start & inside:
        raise ValueError(f"the block at {offsets} cuts through the swizzle of {buffer_type}")
    return shared.padded(start) * element_bytes(tilegpu.buffer_info(buffer_type)[1])


@rule("tilegpu.local_load")
def local_load(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    if is_fused(ctx, op.results[0]):
        return [ctx.poison(ctx.tensor(op.results[0]).vector)]
    base = ctx.value(op.operands[0])
    return [load_tensor(ctx, base, shared_of(op.operands[0].type), op.results[0])]


@rule("tilegpu.local_store")
def local_store(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    vector, base = ctx.operands(op)
    store_tensor(ctx, vector, op.operands[0], base, shared_of(op.operands[1].type))
    return []


def load_tensor(ctx: LoweringContext, base: ir.Value, shared: SharedLayout, result: ir.Value) -> ir.Value:
    """The elements of the buffer at `base` that the threads hold of the old tensor value `result`."""
    info = ctx.tensor(result)
    element = shared_access.memory_element(ctx, info.element)
    loaded = shared_access.load(ctx, base, element, shared_columns(info.layout, shared), padding=shared.padding)
    return shared_access.from_memory(ctx, loaded, info.element)


def store_tensor(ctx: LoweringContext, vector: ir.Value, tensor: ir.Value, base: ir.Value, shared: SharedLayout) -> None:
    """Write the elements `vector` of the old tensor value `tensor` to the buffer at `base`; copies write the same value."""
    columns = shared_columns(ctx.layout(tensor), shared)
    free = ctx.layout(tensor).free_masks()["register"]
    words = shared_access.to_memory(ctx, vector)
    kept = [bit for bit in range(len(columns["register"])) if not free >> bit & 1]
    if free:
        words = vectors.shuffle(ctx, words, linear.images([1 << bit for bit in kept]))
        columns = dict(columns, register=tuple(columns["register"][bit] for bit in kept))
    shared_access.store(ctx, base, words, columns, padding=shared.padding)
