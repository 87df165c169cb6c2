"""Linear maps over F2 applied to an index at run time: where in a tensor, or in memory, a thread's elements lie."""

from collections.abc import Sequence

from mlir import ir

from tilewright.compiler.layouts import LinearLayout

from .context import LoweringContext


def images(columns: Sequence[int]) -> list[int]:
    """The image of every index: entry i is the XOR of the columns of the set bits of i."""
    out = [0]
    for column in columns:
        out += [x ^ column for x in out]
    return out


def apply_columns(ctx: LoweringContext, index: ir.Value, columns: Sequence[int]) -> ir.Value:
    """The i32 XOR of `columns[i]` over the set bits i of the i32 value `index`.

    A run of bits that moves as a whole costs an `and` and a shift, any other bit an `and`, a shift and a multiplication.
    """
    return _combine(ctx, _terms(ctx, index, columns))


def thread_columns(layout: LinearLayout) -> tuple[int, ...]:
    """The packed images of the bits of the thread id: lanes, then warps."""
    return layout.column("lane") + layout.column("warp")


def thread_part(ctx: LoweringContext, layout: LinearLayout, dim: int | None = None) -> ir.Value:
    """What thread and CTA contribute to the coordinate along `dim`, or to the row-major index of the element if `dim` is None.

    The coordinate of register r is this value XOR the image of r. Emitted once per function.
    """
    columns, blocks = thread_columns(layout), layout.column("block")
    if dim is not None:
        shift, mask = layout.shifts[dim], layout.out_sizes[dim] - 1
        columns = tuple((c >> shift) & mask for c in columns)
        blocks = tuple((c >> shift) & mask for c in blocks)

    def build() -> ir.Value:
        terms = _terms(ctx, ctx.thread_id, columns)
        if any(blocks):
            terms += _terms(ctx, ctx.cluster_rank, blocks)
        return _combine(ctx, terms)

    return ctx.once(f"thread part {columns} {blocks}", build)


def _terms(ctx: LoweringContext, index: ir.Value, columns: Sequence[int]) -> list[tuple[ir.Value, int]]:
    """The summands of the image, each with the mask of the bits it may set."""
    i32 = ctx.types.i32
    runs: dict[int, int] = {}  # shift to the left -> mask of the index bits that move by it
    terms = []
    for bit, column in enumerate(columns):
        if column == 0:
            continue
        if column & (column - 1) == 0:
            shift = column.bit_length() - 1 - bit
            runs[shift] = runs.get(shift, 0) | 1 << bit
            continue
        moved = ctx.emit("llvm.lshr", i32, (index, ctx.i32(bit))) if bit else index
        single = ctx.emit("llvm.and", i32, (moved, ctx.i32(1)))
        terms.append((ctx.emit("llvm.mul", i32, (single, ctx.i32(column))), column))
    for shift, mask in runs.items():
        masked = ctx.emit("llvm.and", i32, (index, ctx.i32(mask)))
        if shift > 0:
            masked = ctx.emit("llvm.shl", i32, (masked, ctx.i32(shift)))
        elif shift < 0:
            masked = ctx.emit("llvm.lshr", i32, (masked, ctx.i32(-shift)))
        terms.append((masked, mask << shift if shift >= 0 else mask >> -shift))
    return terms


def _combine(ctx: LoweringContext, terms: Sequence[tuple[ir.Value, int]]) -> ir.Value:
    if not terms:
        return ctx.i32(0)
    (value, support), *rest = terms
    for term, mask in rest:
        if support & mask:
            value = ctx.emit("llvm.xor", ctx.types.i32, (value, term))
        else:
            value = ctx.emit("llvm.or", ctx.types.i32, (value, term), ctx.types.disjoint)
        support |= mask
    return value


def add_constants(ctx: LoweringContext, base: ir.Value, support: int, constants: Sequence[int]) -> ir.Value:
    """`vector<N x i32>` of base XOR constants[i]; `support` is the mask of the bits that `base` may set.

    Where the bits are disjoint the XOR is an addition that cannot overflow, which LLVM folds into addresses.
    """
    count = len(constants)
    vector = ctx.types.vector(count, ctx.types.i32)
    spread = ctx.splat(base, count)
    if not any(constants):
        return spread
    offsets = ctx.constant_vector(ctx.types.i32, constants)
    used = 0
    for constant in constants:
        used |= constant
    if support & used:
        return ctx.emit("llvm.xor", vector, (spread, offsets))
    return ctx.emit("llvm.add", vector, (spread, offsets), ctx.types.no_wrap)


def support_of(columns: Sequence[int]) -> int:
    """The mask of the bits that the image of the columns may set."""
    mask = 0
    for column in columns:
        mask |= column
    return mask


def dim_columns(layout: LinearLayout, name: str, dim: int) -> tuple[int, ...]:
    """The coordinate along `dim` of each basis of the input `name`."""
    shift, mask = layout.shifts[dim], layout.out_sizes[dim] - 1
    return tuple((c >> shift) & mask for c in layout.column(name))


def coordinates(ctx: LoweringContext, layout: LinearLayout, dim: int) -> ir.Value:
    """`vector<N x i32>` of the coordinate along `dim` of each of the thread's elements."""
    support = support_of([c for name in ("lane", "warp", "block") for c in dim_columns(layout, name, dim)])
    return add_constants(ctx, thread_part(ctx, layout, dim), support, images(dim_columns(layout, "register", dim)))


def linear_indices(ctx: LoweringContext, layout: LinearLayout) -> ir.Value:
    """`vector<N x i32>` of the row-major index in the tensor of each of the thread's elements."""
    support = support_of(thread_columns(layout) + layout.column("block"))
    return add_constants(ctx, thread_part(ctx, layout), support, images(layout.column("register")))
