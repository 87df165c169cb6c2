"""TMA: copies of whole blocks between global and shared memory that one thread issues.

Before: a `!tile.desc` value is the address of a tensor map (128 bytes) whose box and swizzle are those of `tma_boxes` for the buffer's
layout; writes to a buffer that is stored were made visible by `fence_async` and a barrier; `mbarrier_expect` was told the bytes.
After: thread 0 of the partition issues one copy for each box; loads count on the mbarrier, stores form one bulk group for each op. With
`tilegpu.each_warp` one thread of each warp stores the boxes of its own rows (`analysis.staging`).
"""

from dataclasses import replace

from mlir import ir

from tilewright.compiler.encoding import shared_of
from tilewright.compiler.layouts.core import log2_exact
from tilewright.compiler.layouts.descriptors import MAX_BOX, TmaBoxes, tma_boxes
from tilewright.dialects import tilegpu

from . import access, linear
from .access import keyword
from .asm import inline_asm
from .branches import when
from .context import LoweringContext
from .memory import l2_policy
from .registry import rule
from .shared_memory import element_bytes
from .sync import elected, leads_warp, own_rows
from .tensor_map import BULK

#: PTX names of the reductions that TMA knows, by the kind of tma_reduce.
REDUCTIONS = {"add": "add", "fadd": "add", "max": "max", "umax": "max", "min": "min", "umin": "min", "and": "and", "or": "or", "xor": "xor"}


def boxes_of(buffer_type: ir.Type, rows: int = MAX_BOX) -> TmaBoxes:
    """Return the boxes of at most `rows` rows that TMA copies for a buffer. Raises ValueError if TMA cannot write its layout."""
    boxes = tma_boxes(shared_of(buffer_type), 8 * element_bytes(tilegpu.buffer_info(buffer_type)[1]), rows)
    if boxes is None:
        raise ValueError(f"TMA cannot copy a buffer of type {buffer_type}")
    return boxes


def prefetch_tensor_maps(ctx: LoweringContext) -> None:
    """Let the first thread of the CTA or role fetch the tensor maps that the kernel is passed."""
    maps = ctx.tensor_maps
    if maps:
        text = " ".join(f"prefetch.tensormap [${i}];" for i in range(len(maps)))
        constraints = ",".join([*["l"] * len(maps), "~{memory}"])
        when(ctx, access.first_thread(ctx), lambda: inline_asm(ctx, text, constraints, maps, None))


def _parts(ctx: LoweringContext, boxes: TmaBoxes, indices: list[ir.Value], buffer: ir.Value) -> list[tuple[list[ir.Value], ir.Value]]:
    """(coordinates with the innermost first, shared address) of each box."""
    out = []
    for start, offset in boxes.parts:
        shifted = [ctx.emit("llvm.add", ctx.types.i32, (i, ctx.i32(s))) if s else i for i, s in zip(indices, start, strict=True)]
        address = buffer
        if offset:
            address = ctx.emit("llvm.getelementptr", buffer.type, (buffer,), ctx.types.const_gep_attrs(ctx.types.i8, offset))
        out.append((shifted[::-1], address))
    return out


def _coordinates(first: int, count: int) -> str:
    return "{" + ", ".join(f"${first + i}" for i in range(count)) + "}"


@rule("tilegpu.tma_load")
def tma_load(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """With `tilegpu.ctas`, the CTAs whose ranks differ in these bits load one piece of the block each, for all of them."""
    ctas = ir.IntegerAttr(op.attributes["tilegpu.ctas"]).value if "tilegpu.ctas" in op.attributes else 0
    descriptor, *indices, buffer, mbarrier = list(op.operands)[: _without_predicate(op)]
    condition = elected(ctx, op, _without_predicate(op))
    if _is_bulk(descriptor):
        _load_bulk(ctx, op, condition)
        return []
    rank = len(indices)
    evict = keyword(op, "evict", "evict_normal")
    hint = "" if evict == "evict_normal" else ".L2::cache_hint"
    more = ([_cta_mask(ctx, ctas)] if ctas else []) + ([l2_policy(ctx, evict)] if hint else [])
    tail = "".join(f", ${3 + rank + i}" for i in range(len(more)))
    text = (
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        f"{'.multicast::cluster' if ctas else ''}{hint} [$0], [$1, {_coordinates(3, rank)}], [$2]{tail};"
    )
    constraints = ",".join(["r", "l", "r", *["r"] * rank, *["h"] * bool(ctas), *["l"] * bool(hint), "~{memory}"])
    values, address = [ctx.value(v) for v in indices], ctx.value(buffer)
    boxes = boxes_of(buffer.type, min(MAX_BOX, tilegpu.buffer_info(buffer.type)[0][0] >> ctas.bit_count()))
    if ctas:
        boxes, values, address = _own_piece(ctx, boxes, buffer.type, ctas, values, address)
    parts = _parts(ctx, boxes, values, address)

    def issue() -> None:
        for coordinates, address in parts:
            operands = (address, ctx.value(descriptor), ctx.value(mbarrier), *coordinates, *more)
            inline_asm(ctx, text, constraints, operands, None)

    when(ctx, condition, issue)
    return []


def _is_bulk(descriptor: ir.Value) -> bool:
    """Whether a descriptor is no tensor map but a pointer (`passes.bulk_vectors`)."""
    owner = descriptor.owner
    return not isinstance(owner, ir.Block) and BULK in owner.operation.attributes


def _load_bulk(ctx: LoweringContext, op: ir.Operation, condition: ir.Value | None) -> None:
    """Copy a vector as it lies in memory."""
    descriptor, index, buffer, mbarrier = list(op.operands)[:4]
    shape, element, *_ = tilegpu.buffer_info(buffer.type)
    source = ctx.emit(
        "llvm.getelementptr", ctx.value(descriptor).type, (ctx.value(descriptor), ctx.value(index)), ctx.types.gep_attrs(element)
    )
    size = shape[0] * element_bytes(element)
    text = f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], {size}, [$2];"
    operands = (ctx.value(buffer), source, ctx.value(mbarrier))
    when(ctx, condition, lambda: inline_asm(ctx, text, "r,l,r,~{memory}", operands, None))


def _cta_mask(ctx: LoweringContext, ctas: int) -> ir.Value:
    """i16: the set of the CTAs whose ranks differ from this one's in the bits `ctas`."""
    t = ctx.types
    everyone = sum(1 << rank for rank in linear.images([1 << bit for bit in range(ctas.bit_length()) if ctas >> bit & 1]))

    def build() -> ir.Value:
        first = ctx.emit("llvm.and", t.i32, (ctx.cluster_rank, ctx.i32(ctx.facts.num_ctas - 1 & ~ctas)))
        return ctx.emit("llvm.trunc", t.i16, (ctx.emit("llvm.shl", t.i32, (ctx.i32(everyone), first)),))

    return ctx.once(f"set of {ctas}", build)


def _own_piece(
    ctx: LoweringContext, boxes: TmaBoxes, buffer_type: ir.Type, ctas: int, indices: list[ir.Value], address: ir.Value
) -> tuple[TmaBoxes, list[ir.Value], ir.Value]:
    """(boxes of the first piece, indices and address of this CTA's piece): the bits `ctas` of the rank count the pieces."""
    shared, size = shared_of(buffer_type), element_bytes(tilegpu.buffer_info(buffer_type)[1])
    rows = shared.shape[0] >> ctas.bit_count()
    columns = shared.address_columns()[shared.linear.shifts[0] + rows.bit_length() - 1 :]
    steps, offsets = [0] * ctas.bit_length(), [0] * ctas.bit_length()
    for number, bit in enumerate(b for b in range(ctas.bit_length()) if ctas >> b & 1):
        steps[bit], offsets[bit] = rows << number, columns[number] * size
    row, place = (
        ctx.once(f"piece {moved}", lambda moved=moved: linear.apply_columns(ctx, ctx.cluster_rank, moved)) for moved in (steps, offsets)
    )
    own = replace(boxes, parts=tuple(part for part in boxes.parts if part[0][0] < rows))
    address = ctx.emit("llvm.getelementptr", address.type, (address, place), ctx.types.gep_attrs(ctx.types.i8))
    return own, [ctx.emit("llvm.add", ctx.types.i32, (indices[0], row)), *indices[1:]], address


def _without_predicate(op: ir.Operation) -> int:
    """The number of operands of a tma_load in front of its predicate."""
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    return sum(sizes[:4])


def _store(ctx: LoweringContext, op: ir.Operation, instruction: str) -> list[ir.Value]:
    descriptor, *indices, buffer = list(op.operands)
    rank = len(indices)
    text = f"{instruction} [$0, {_coordinates(2, rank)}], [$1];"
    constraints = ",".join(["l", "r", *["r"] * rank, "~{memory}"])
    values, base = [ctx.value(v) for v in indices], ctx.value(buffer)
    rows = own_rows(op)
    condition = leads_warp(ctx) if rows else elected(ctx, op, len(op.operands))
    boxes = boxes_of(buffer.type, rows or MAX_BOX)

    def issue() -> None:
        at, start, parts = values, base, boxes
        if rows:
            at, start, parts = _of_warp(ctx, boxes, rows, buffer.type, values, base)
        for coordinates, address in _parts(ctx, parts, at, start):
            inline_asm(ctx, text, constraints, (ctx.value(descriptor), address, *coordinates), None)
        inline_asm(ctx, "cp.async.bulk.commit_group;", "~{memory}", (), None)

    when(ctx, condition, issue)
    return []


def _of_warp(
    ctx: LoweringContext, boxes: TmaBoxes, rows: int, buffer_type: ir.Type, indices: list[ir.Value], base: ir.Value
) -> tuple[list[ir.Value], ir.Value, TmaBoxes]:
    """(indices, address, boxes) of the part of a buffer that a warp stores; see `analysis.staging.Staging.rows`."""
    shared = shared_of(buffer_type)
    size = element_bytes(tilegpu.buffer_info(buffer_type)[1])
    height, width = shared.shape
    first, bits = log2_exact(rows), log2_exact(ctx.warps)
    deep = min(bits, log2_exact(height) - first)
    part = width >> bits - deep
    addresses = shared.address_columns()
    below, right = (addresses[shared.linear.shifts[dim] + start :] for dim, start in ((0, first), (1, log2_exact(part))))
    columns = [c * size for c in (*below[:deep], *right[: bits - deep])]
    steps = ([rows << i for i in range(deep)], [0] * deep + [part << i for i in range(bits - deep)])
    at = list(indices)
    for dim, step in enumerate(steps):
        if any(step):
            moved = linear.apply_columns(ctx, ctx.uniform_warp_id, step)
            at[dim] = ctx.emit("llvm.add", ctx.types.i32, (indices[dim], moved))
    offset = linear.apply_columns(ctx, ctx.uniform_warp_id, columns)
    address = ctx.emit("llvm.getelementptr", ctx.types.ptr3, (base, offset), ctx.types.gep_attrs(ctx.types.i8))
    mask = rows * ((1 << deep) - 1)
    return at, address, replace(boxes, parts=tuple(p for p in boxes.parts if not p[0][0] & mask and p[0][1] < part))


@rule("tilegpu.tma_store")
def tma_store(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    rank = len(op.operands) - 2
    return _store(ctx, op, f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group")


@rule("tilegpu.tma_reduce")
def tma_reduce(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    rank, kind = len(op.operands) - 2, keyword(op, "kind")
    if kind not in REDUCTIONS:
        raise ValueError(f"tma_reduce: no reduction {kind}; accepted: {', '.join(REDUCTIONS)}")
    return _store(ctx, op, f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{REDUCTIONS[kind]}.tile.bulk_group")


@rule("tilegpu.tma_store_wait")
def tma_store_wait(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    number = ir.IntegerAttr(op.attributes["num"]).value
    read = ".read" if "read" in op.attributes else ""
    inline_asm(ctx, f"cp.async.bulk.wait_group{read} {number};", "~{memory}", (), None)
    return []
