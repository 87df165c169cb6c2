"""Data between the threads of a warp (shuffles) and between the warps of a CTA (shared scratch), for reductions and scans."""

from collections.abc import Sequence

from mlir import ir

from tilewright.compiler.layouts import LinearLayout

from . import linear, vectors
from .context import LoweringContext

ALIGNMENT = 16  # bytes between the scratch areas of the operands of one op


def shuffle_xor(ctx: LoweringContext, vector: ir.Value, mask: int) -> ir.Value:
    """`vector` of the lane whose number differs in the bits of `mask`."""
    return _shuffle(ctx, vector, "bfly", ctx.i32(mask))


def shuffle_index(ctx: LoweringContext, vector: ir.Value, lane: ir.Value) -> ir.Value:
    """`vector` of lane number `lane` (i32)."""
    return _shuffle(ctx, vector, "idx", lane)


def _shuffle(ctx: LoweringContext, vector: ir.Value, mode: str, operand: ir.Value) -> ir.Value:
    count, element = ctx.types.parts(vector.type)

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value:
        value, lane = arguments
        i32 = inner.types.i32
        words = to_shuffle_words(inner, value)
        everyone, clamp = inner.i32(-1), inner.i32(31)
        moved = [inner.call_intrinsic(f"llvm.nvvm.shfl.sync.{mode}.i32", i32, (everyone, w, lane, clamp)) for w in words]
        return from_shuffle_words(inner, moved, count, element)

    return ctx.helper(f"shuffle.{mode}.{count}x{element}", vector.type, (vector, operand), build)


def to_shuffle_words(ctx: LoweringContext, vector: ir.Value) -> list[ir.Value]:
    """The bits of `vector` in i32 words, padded with zeros."""
    count, element = ctx.types.parts(vector.type)
    t = ctx.types
    if element == t.i1:
        return vectors.unpack(ctx, ctx.emit("llvm.zext", t.vector(count, t.i32), (vector,)))
    if element in t.pointers:
        vector = ctx.emit("llvm.ptrtoint", t.vector(count, t.i64), (vector,))
    bits = count * t.width(vector.type)
    if bits >= 32:
        return vectors.to_words(ctx, vector)
    return [ctx.emit("llvm.zext", t.i32, (vectors.bitcast(ctx, vector, t.int(bits)),))]


def from_shuffle_words(ctx: LoweringContext, words: Sequence[ir.Value], count: int, element: ir.Type) -> ir.Value:
    """The inverse of `to_shuffle_words`."""
    t = ctx.types
    if element == t.i1:
        return ctx.emit("llvm.trunc", t.vector(count, t.i1), (vectors.pack(ctx, words),))
    if element in t.pointers:
        return ctx.emit("llvm.inttoptr", t.vector(count, element), (vectors.from_words(ctx, words, count, t.i64),))
    bits = count * t.widths[element]
    if bits >= 32:
        return vectors.from_words(ctx, words, count, element)
    return vectors.bitcast(ctx, ctx.emit("llvm.trunc", t.int(bits), (words[0],)), t.vector(count, element))


def compress(value: int, mask: int) -> int:
    """The bits of `value` that `mask` selects, moved together."""
    out = position = 0
    while mask:
        low = mask & -mask
        if value & low:
            out |= 1 << position
        position += 1
        mask ^= low
    return out


def area_bytes(rows: int, warps: int, bits: int) -> int:
    """Bytes that an exchange of `rows` partial results of `warps` warps takes for one operand."""
    size = rows * warps * max(1, bits // 8)
    return -(-size // ALIGNMENT) * ALIGNMENT


class WarpExchange:
    """Partial results of several warps, brought together in shared memory as [row][warp].

    A row is named by the bits `row_mask` of the packed coordinate. `warp_bits` are the bits of the warp index whose warps hold partial
    results of the same row, and `register_images` the packed coordinates of the elements of a partial vector.
    """

    def __init__(
        self,
        ctx: LoweringContext,
        layout: LinearLayout,
        row_mask: int,
        warp_bits: Sequence[int],
        register_images: Sequence[int],
        base: ir.Value,
    ) -> None:
        self.ctx = ctx
        self.warps = 1 << len(warp_bits)
        self.rows = 1 << row_mask.bit_count()
        self.registers = [compress(image & row_mask, row_mask) * self.warps for image in register_images]
        lane_bits = layout.in_bits("lane")
        columns = [compress(c & row_mask, row_mask) * self.warps for c in linear.thread_columns(layout)]
        own = list(columns)
        for i, bit in enumerate(warp_bits):
            own[lane_bits + bit] |= 1 << i
        self.row_offset = self._offset(columns)
        self.own_offset = self._offset(own)
        self.base = base

    def _offset(self, columns: Sequence[int]) -> ir.Value:
        ctx = self.ctx
        return ctx.once(f"exchange {columns}", lambda: linear.apply_columns(ctx, ctx.thread_id, columns))

    def swap(self, partials: Sequence[ir.Value]) -> list[list[ir.Value]]:
        """Write the partial vectors, one per operand, and read those of all warps: for each operand a vector per warp, in warp order."""
        stored = [self._in_memory(vector) for vector in partials]
        area, areas = 0, []
        for vector in stored:
            _, element = self.ctx.types.parts(vector.type)
            areas.append(area)
            own = self._pointer(area, element, self.own_offset)
            for i, register in enumerate(self.registers):
                scalar = vectors.extract(self.ctx, vector, i)
                self.ctx.emit_void("llvm.store", (scalar, self._at(own, element, register)))
            area += area_bytes(self.rows, self.warps, self.ctx.types.widths[element])
        self.ctx.barrier()
        gathered = []
        for vector, area, partial in zip(stored, areas, partials, strict=True):
            _, element = self.ctx.types.parts(vector.type)
            row = self._pointer(area, element, self.row_offset)
            gathered.append(self._read(row, element, partial.type))
        return gathered

    def _read(self, row: ir.Value, element: ir.Type, partial_type: ir.Type) -> list[ir.Value]:
        ctx = self.ctx
        type = ctx.types.vector(self.warps, element)
        align = {"alignment": ctx.types.int_attr(64, min(16, self.warps * ctx.types.widths[element] // 8))}
        rows = [ctx.emit("llvm.load", type, (self._at(row, element, register),), align) for register in self.registers]
        together = vectors.concat(ctx, rows)
        count = len(rows)
        by_warp = [vectors.shuffle(ctx, together, [r * self.warps + w for r in range(count)]) for w in range(self.warps)]
        return [self._from_memory(v, partial_type) for v in by_warp]

    def _pointer(self, area: int, element: ir.Type, offset: ir.Value) -> ir.Value:
        base = self._at(self.base, self.ctx.types.i8, area)
        return self.ctx.emit("llvm.getelementptr", base.type, (base, offset), self.ctx.types.gep_attrs(element))

    def _at(self, pointer: ir.Value, element: ir.Type, index: int) -> ir.Value:
        if index == 0:
            return pointer
        return self.ctx.emit("llvm.getelementptr", pointer.type, (pointer,), self.ctx.types.const_gep_attrs(element, index))

    def _in_memory(self, vector: ir.Value) -> ir.Value:
        t = self.ctx.types
        count, element = t.parts(vector.type)
        return self.ctx.emit("llvm.zext", t.vector(count, t.i8), (vector,)) if element == t.i1 else vector

    def _from_memory(self, vector: ir.Value, type: ir.Type) -> ir.Value:
        return vector if vector.type == type else self.ctx.emit("llvm.trunc", type, (vector,))
