"""`tile.reduce`: combine along one dimension in the registers of a thread, then across lanes, then across warps.

The combine region is applied to whole vectors: a thread's elements are taken eight at a time, then the halves of what that leaves. Lanes
exchange by butterfly shuffles. Warps meet in shared memory with one barrier: each writes its partial results once, and every thread
reads those of all warps for its own rows, so that all holders of a row have the result without a second exchange.

That changes the order of operands, which only a commutative function allows. Where the combine region is not known to be one, the bits
of the coordinate along the axis are taken from low to high instead, whatever holds them, and at each the block of the lower coordinates
comes first: operands stay in order, at the price of two selects per exchange between lanes and of one exchange per run of warp bits.
"""

from collections.abc import Sequence

from mlir import ir

from tilewright.compiler.layouts import LinearLayout, shape_ops

from . import linear, vectors, warps
from .asm import inline_asm
from .context import LoweringContext
from .registry import rule

CHAINS = 8  # of a thread's elements, summed up at the same time: enough to hide the latency of an addition

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


# ops whose operands may change places
_COMMUTATIVE = frozenset(
    f"arith.{name}"
    for name in (
        "addi", "addf", "muli", "mulf", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui",
        "maximumf", "minimumf", "maxnumf", "minnumf",
    )
)  # fmt: skip


def commutes(op: ir.Operation) -> bool:
    """Whether the combine region of a reduction gives the same whichever side its two groups of operands are on.

    The front end marks the functions of the language that are to count as commutative; of others, both orders are numbered by value."""
    if "tile.commutative" in op.attributes:
        return True
    block = op.regions[0].blocks[0]
    numbers: dict[tuple, int] = {}
    return _yielded(block, numbers, 0) == _yielded(block, numbers, len(block.arguments) // 2)


def _yielded(block: ir.Block, numbers: dict[tuple, int], shift: int) -> list[int]:
    """Value numbers of what a combine region yields, its arguments numbered from `shift` on in a circle."""
    arguments = list(block.arguments)
    known = {a: numbers.setdefault(("argument", (i + shift) % len(arguments)), len(numbers)) for i, a in enumerate(arguments)}
    for op in block.operations:
        operands = [known[v] for v in op.operands]
        if op.operation.name == "tile.yield":
            return operands
        what = (op.operation.name, tuple(sorted((key, str(op.attributes[key])) for key in op.attributes)))
        # what has regions inside is taken to differ: its number is new each time
        what += (len(numbers),) if len(op.regions) else tuple(sorted(operands) if what[0] in _COMMUTATIVE else operands)
        for i, result in enumerate(op.results):
            known[result] = numbers.setdefault((*what, str(result.type), i), len(numbers))
    raise ValueError("a combine region ends with tile.yield")


def scratch_bytes(op: ir.Operation, layout: LinearLayout, axis: int, element_bits: Sequence[int]) -> int:
    """Bytes of shared memory that the reduction `op` of tensors of `layout` along `axis` needs; 0 if no warp bit moves along `axis`."""
    if not commutes(op):
        return ordered_scratch_bytes(layout, axis, element_bits)
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


def ordered_scratch_bytes(layout: LinearLayout, axis: int, element_bits: Sequence[int]) -> int:
    """Bytes of shared memory that a scan, or a reduction in order, along `axis` needs; 0 if no warp bit moves along it."""
    mask = axis_mask(layout, axis)
    need, below = 0, 0
    for name, bits, columns in steps(layout, mask):
        if name == "warp":
            rows = layout.out_bits - (below | linear.support_of(columns)).bit_count()
            need = max(need, sum(warps.area_bytes(1 << rows, 1 << len(bits), b) for b in element_bits))
        below |= linear.support_of(columns)
    return need


def steps(layout: LinearLayout, mask: int) -> list[tuple[str, list[int], list[int]]]:
    """The bits of the axis from low to high as (input, its bits, their packed images); neighbouring warp bits form one step.

    Raises ValueError if a bit of the coordinate is moved by other than exactly one bit of one input.
    """
    holder = {}
    for name in ("block", "warp", "lane", "register"):
        for bit, image in enumerate(layout.column(name)):
            if image & mask:
                if image & (image - 1):
                    raise ValueError(f"{name} bit {bit} of {layout} does not step along the axis of a scan or reduction")
                holder[image] = (name, bit)
    result: list[tuple[str, list[int], list[int]]] = []
    image = mask & -mask
    while image & mask:
        name, bit = holder[image]
        if name == "block":
            raise ValueError("a scan or reduction across the CTAs of a cluster has no lowering")
        if name == "warp" and result and result[-1][0] == "warp":
            result[-1][1].append(bit)
            result[-1][2].append(image)
        else:
            result.append((name, [bit], [image]))
        image <<= 1
    return result


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
    if not commutes(op):
        values = reduce_in_order(ctx, op, combine, values, layout, mask)
        return [place(ctx, value, shape_ops.slice_dim(layout, axis), result) for value, result in zip(values, op.results)]
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
    along = [b for b in bits if b in moving]
    chained = min(len(along), max(0, (len(registers) // CHAINS).bit_length() - 1))
    while along:
        # halves leave half as many values that are all alive; what is left of many is added up in a few chains
        taken = along[-max(chained, 1) :]
        mark = sum(1 << b for b in taken)
        parts: dict[int, list[int]] = {}
        for i, register in enumerate(registers):
            parts.setdefault(register & mark, []).append(i)
        first, *rest = parts.values()
        total = [vectors.shuffle(ctx, v, first) for v in values]
        for part in rest:
            total = combine(total, [vectors.shuffle(ctx, v, part) for v in values])
        values, registers = total, [registers[i] for i in first]
        along, chained = along[: -len(taken)], 0
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


def reduce_in_order(
    ctx: LoweringContext, op: ir.Operation, combine: Combine, values: list[ir.Value], layout: LinearLayout, mask: int
) -> list[ir.Value]:
    """Combine along the axis of `mask`, of two blocks of elements always the one of lower coordinates first.

    The elements of the results are those of the sliced layout, in its order."""
    unique = shape_ops.drop_register_copies(layout)
    order = shape_ops.register_sources(layout, unique)
    values = [vectors.shuffle(ctx, v, order) for v in values]
    blocks = list(range(unique.in_size("register")))  # the first register of each block of elements
    done, exchanged = 0, False
    for name, bits, images in steps(unique, mask):
        done |= linear.support_of(images)
        if name == "register":
            halves = [[i for i, b in enumerate(blocks) if (b >> bits[0] & 1) == half] for half in (0, 1)]
            values = combine(*([vectors.shuffle(ctx, v, half) for v in values] for half in halves))
            blocks = [blocks[i] for i in halves[0]]
        elif name == "lane":
            other = [warps.shuffle_xor(ctx, v, 1 << bits[0]) for v in values]
            later = lane_bit(ctx, bits[0])
            values = combine(choose(ctx, later, other, values), choose(ctx, later, values, other))
        else:
            if exchanged:
                ctx.barrier()
            exchanged = True
            parts = warps_in_order(ctx, op, unique, values, blocks, bits, done)
            values = reduce_warps(combine, [list(v) for v in zip(*parts, strict=True)])
    return values


def choose(ctx: LoweringContext, condition: ir.Value, yes: Sequence[ir.Value], no: Sequence[ir.Value]) -> list[ir.Value]:
    """`yes` where the i1 `condition` of the thread holds, else `no`."""
    return [ctx.emit("llvm.select", a.type, (condition, a, b)) for a, b in zip(yes, no, strict=True)]


def lane_bit(ctx: LoweringContext, bit: int, value: bool = True) -> ir.Value:
    """i1: whether bit `bit` of the lane number is `value`."""
    masked = ctx.emit("llvm.and", ctx.types.i32, (ctx.thread_id, ctx.i32(1 << bit)))
    return ctx.emit("llvm.icmp", ctx.types.i1, (masked, ctx.i32(0)), ctx.types.icmp("ne" if value else "eq"))


def warps_in_order(
    ctx: LoweringContext,
    op: ir.Operation,
    layout: LinearLayout,
    values: Sequence[ir.Value],
    blocks: Sequence[int],
    warp_bits: Sequence[int],
    done: int,
) -> list[list[ir.Value]]:
    """What the warps that differ in `warp_bits` hold: for each the vectors like `values`, by ascending coordinate.

    `blocks` are the registers that the elements of `values` stand for, `done` the coordinate bits that are combined, those of the warps
    among them."""
    images = linear.images(layout.column("register"))
    rows = (1 << layout.out_bits) - 1 & ~done
    exchange = warps.WarpExchange(ctx, layout, rows, warp_bits, [images[b] for b in blocks], ctx.scratch(op))
    return [list(part) for part in zip(*exchange.swap(values), strict=True)]


def place(ctx: LoweringContext, vector: ir.Value, layout: LinearLayout, result: ir.Value) -> ir.Value:
    """A reduced vector of `layout` as the old value `result`: a tensor, or a scalar."""
    if not isinstance(result.type, ir.RankedTensorType):
        return vectors.extract(ctx, vector, 0)
    order = shape_ops.register_sources(layout, ctx.layout(result))
    if order is None:
        raise ValueError(f"a reduction to {ctx.layout(result)} needs data of another thread than {layout}")
    return vectors.shuffle(ctx, vector, order)
