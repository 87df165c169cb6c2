"""`tile.reduce`: combine along one dimension in the registers of a thread, then across lanes, then across warps.

The combine region is applied to whole vectors: each halving step combines one half of a thread's elements with the other. Lanes
exchange by butterfly shuffles. Warps meet in shared memory with one barrier: each writes its partial results once, and every thread
reads those of all warps for its own rows, so that all holders of a row have the result without a second exchange.

The combine function is taken to be associative and commutative.
"""

from collections.abc import Sequence

from mlir import ir

from tilewright.compiler.layouts import LinearLayout, shape_ops

from . import linear, vectors, warps
from .asm import inline_asm
from .context import LoweringContext
from .registry import rule

REDUX = {
    "arith.addi": "add.s32",
    "arith.maxsi": "max.s32",
    "arith.minsi": "min.s32",
    "arith.maxui": "max.u32",
    "arith.minui": "min.u32",
    "arith.andi": "and.b32",
    "arith.ori": "or.b32",
    "arith.xori": "xor.b32",
}


def scratch_bytes(layout: LinearLayout, axis: int, element_bits: Sequence[int]) -> int:
    """Bytes of shared memory that a reduction of tensors of `layout` along `axis` needs; 0 if no warp bit moves along `axis`."""
    mask = axis_mask(layout, axis)
    warp_bits = moving_bits(layout, "warp", mask)
    if not warp_bits:
        return 0
    rows = 1 << (layout.out_bits - mask.bit_count())
    return sum(warps.area_bytes(rows, 1 << len(warp_bits), bits) for bits in element_bits)


def axis_mask(layout: LinearLayout, axis: int) -> int:
    """The bits of a packed coordinate that belong to dimension `axis`."""
    return (layout.out_sizes[axis] - 1) << layout.shifts[axis]


def moving_bits(layout: LinearLayout, name: str, mask: int) -> list[int]:
    """The bits of the input `name` that move along the dimension of `mask`. Raises ValueError if one moves along others too."""
    bits = []
    for bit, column in enumerate(layout.column(name)):
        if column & mask:
            if column & ~mask:
                raise ValueError(f"{name} bit {bit} of {layout} moves along several dimensions of a reduction")
            bits.append(bit)
    return bits


class Combine:
    """The combine region of a reduce or scan, as a function on lists of vectors."""

    def __init__(self, ctx: LoweringContext, op: ir.Operation) -> None:
        self.ctx = ctx
        self.block = op.regions[0].blocks[0]

    def __call__(self, first: Sequence[ir.Value], second: Sequence[ir.Value]) -> list[ir.Value]:
        return self.ctx.apply_region(self.block, [*first, *second], vectors.length(self.ctx, first[0]))

    def single_op(self) -> str | None:
        """Name of the op if the region combines its two arguments by just one."""
        ops = list(self.block.operations)
        arguments = list(self.block.arguments)
        if (
            len(ops) == 2
            and len(arguments) == 2
            and set(ops[0].operands) == set(arguments)
            and list(ops[1].operands) == list(ops[0].results)
        ):
            return ops[0].operation.name
        return None


@rule("tile.reduce")
def reduce(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    values = ctx.operands(op)
    layout = ctx.layout(op.operands[0])
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    mask = axis_mask(layout, axis)
    if moving_bits(layout, "block", mask):
        raise ValueError("a reduction across the CTAs of a cluster has no lowering")
    combine = Combine(ctx, op)
    values, images = reduce_registers(ctx, combine, values, layout, mask)
    values = reduce_lanes(ctx, combine, values, moving_bits(layout, "lane", mask))
    warp_bits = moving_bits(layout, "warp", mask)
    if warp_bits:
        rows = (1 << layout.out_bits) - 1 & ~mask
        exchange = warps.WarpExchange(ctx, layout, rows, warp_bits, images, ctx.scratch(op))
        values = reduce_warps(combine, exchange.swap(values))
    return [place(ctx, value, shape_ops.slice_dim(layout, axis), result) for value, result in zip(values, op.results)]


def reduce_registers(
    ctx: LoweringContext, combine: Combine, values: list[ir.Value], layout: LinearLayout, mask: int
) -> tuple[list[ir.Value], list[int]]:
    """Combine the elements of a thread along the axis; returns the vectors and the packed coordinates of their elements.

    What remains is in the order of the registers of the sliced layout: one element for each combination of the register bits that do
    not move along the axis and name no copy.
    """
    column = layout.column("register")
    moving = moving_bits(layout, "register", mask)
    kept = list(shape_ops.drop_register_copies(layout).column("register"))
    bits = []  # register bits that name different elements, low to high
    for bit, image in enumerate(column):
        if kept and image == kept[0]:
            bits.append(bit)
            kept.pop(0)
    registers = linear.images([1 << b for b in bits])
    values = [vectors.shuffle(ctx, v, registers) for v in values]
    for bit in reversed([b for b in bits if b in moving]):
        low = [i for i, r in enumerate(registers) if not r >> bit & 1]
        high = [i for i, r in enumerate(registers) if r >> bit & 1]
        first = [vectors.shuffle(ctx, v, low) for v in values]
        second = [vectors.shuffle(ctx, v, high) for v in values]
        values = combine(first, second)
        registers = [registers[i] for i in low]
    images = linear.images(column)
    return values, [images[r] for r in registers]


def reduce_lanes(ctx: LoweringContext, combine: Combine, values: list[ir.Value], lane_bits: list[int]) -> list[ir.Value]:
    """Combine across the lanes that differ in `lane_bits`; all of them get the result."""
    if len(lane_bits) == 5 and values[0].type == ctx.types.vector(1, ctx.types.i32) and combine.single_op() in REDUX:
        text = f"redux.sync.{REDUX[combine.single_op()]} $0, $1, 0xffffffff;"
        return [ctx.splat(inline_asm(ctx, text, "=r,r", (vectors.extract(ctx, values[0], 0),), ctx.types.i32), 1)]
    for bit in reversed(lane_bits):
        values = combine(values, [warps.shuffle_xor(ctx, v, 1 << bit) for v in values])
    return values


def reduce_warps(combine: Combine, gathered: list[list[ir.Value]]) -> list[ir.Value]:
    """Combine what `WarpExchange.swap` returned as a balanced tree."""
    parts = list(zip(*gathered, strict=True))
    while len(parts) > 1:
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return list(parts[0])


def place(ctx: LoweringContext, vector: ir.Value, layout: LinearLayout, result: ir.Value) -> ir.Value:
    """A reduced vector of `layout` as the old value `result`: a tensor, or a scalar."""
    if not isinstance(result.type, ir.RankedTensorType):
        return vectors.extract(ctx, vector, 0)
    order = shape_ops.register_sources(layout, ctx.layout(result))
    if order is None:
        raise ValueError(f"a reduction to {ctx.layout(result)} needs data of another thread than {layout}")
    return vectors.shuffle(ctx, vector, order)
