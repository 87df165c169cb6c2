"""`tile.scan`: inclusive prefixes along one dimension.

The bits of the coordinate along the axis are taken from low to high, whatever holds them. At each bit, blocks of neighbouring elements
merge in pairs: the elements of the later block get the total of the earlier one in front of them. For a register bit both blocks lie in
one thread, for a lane bit the totals are shuffled, and all warp bits in a row meet once in shared memory. What a thread gets from other
threads is kept as one carry per block and applied to all its elements at once.

A reverse scan takes the later block for the earlier one. The combine function is taken to be associative only.
"""

from collections.abc import Sequence

from mlir import ir

from tilewright.compiler.layouts import LinearLayout, shape_ops

from . import linear, vectors, warps
from .context import LoweringContext
from .reduce import Combine, axis_mask, choose, commutes, lane_bit, steps, warps_in_order
from .registry import rule

Vectors = list[ir.Value]


@rule("tile.scan")
def scan(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    layout = ctx.layout(op.operands[0])
    unique = shape_ops.drop_register_copies(layout)
    to_unique = shape_ops.register_sources(layout, unique)
    values = [vectors.shuffle(ctx, v, to_unique) for v in ctx.operands(op)]
    mask = axis_mask(layout, ir.IntegerAttr(op.attributes["axis"]).value)
    state = Scan(ctx, op, unique, values)
    for name, bits, images in steps(unique, mask):
        if name == "register":
            state.registers(bits[0])
        elif name == "lane":
            state.lanes(bits[0])
        else:
            state.warps(bits, images)
        state.done |= linear.support_of(images)
    state.apply_carry()
    back = [shape_ops.register_sources(unique, ctx.layout(result)) for result in op.results]
    return [vectors.shuffle(ctx, v, order) for v, order in zip(state.prefix, back, strict=True)]


class Scan:
    """The scan in progress: `prefix` within the blocks merged so far, the `total` of each block, and the `carry` from other threads.

    `blocks` are the register numbers that name a thread's blocks, in the order of the elements of `total` and `carry`. `has_carry`
    (i1, None for never) says whether this thread has one. `done` is the mask of the coordinate bits merged so far.
    """

    def __init__(self, ctx: LoweringContext, op: ir.Operation, layout: LinearLayout, values: Vectors) -> None:
        self.ctx, self.op, self.layout = ctx, op, layout
        self.reverse = "reverse" in op.attributes
        self.combine, self.commutes = Combine(ctx, op), commutes(op)
        self.prefix = list(values)
        self.total = list(values)
        self.blocks = list(range(layout.in_size("register")))
        self.free_bits = 0  # register bits merged so far
        self.carry: Vectors | None = None
        self.has_carry: ir.Value | None = None
        self.done = 0
        self.exchanged = False

    def spread(self, values: Vectors, registers: Sequence[int]) -> Vectors:
        """For each of `registers` the element of its block."""
        index = {block: i for i, block in enumerate(self.blocks)}
        order = [index[r & ~self.free_bits] for r in registers]
        return [vectors.shuffle(self.ctx, v, order) for v in values]

    def registers(self, bit: int) -> None:
        """Merge the blocks that differ in a register bit."""
        self.apply_carry()
        ctx = self.ctx
        count = self.layout.in_size("register")
        early = 1 if self.reverse else 0
        halves = [[i for i, b in enumerate(self.blocks) if (b >> bit & 1) == half] for half in (early, 1 - early)]
        first, second = ([vectors.shuffle(ctx, v, half) for v in self.total] for half in halves)
        self.blocks = [self.blocks[i] & ~(1 << bit) for i in halves[0]]
        self.free_bits |= 1 << bit
        late = [r for r in range(count) if (r >> bit & 1) != early]
        merged = self.combine(self.spread(first, late), [vectors.shuffle(ctx, v, late) for v in self.prefix])
        position = {r: count + i for i, r in enumerate(late)}
        self.prefix = [
            vectors.shuffle(ctx, old, [position.get(r, r) for r in range(count)], self._padded(new, count))
            for old, new in zip(self.prefix, merged)
        ]
        self.total = self.combine(first, second)

    def _padded(self, vector: ir.Value, count: int) -> ir.Value:
        have = vectors.length(self.ctx, vector)
        return vectors.shuffle(self.ctx, vector, [i % have for i in range(count)])

    def lanes(self, bit: int) -> None:
        """Merge the blocks that lie in lanes that differ in one bit."""
        other = [warps.shuffle_xor(self.ctx, v, 1 << bit) for v in self.total]
        late = lane_bit(self.ctx, bit, not self.reverse)
        first, second = other, self.total
        if not self.commutes:
            first, second = choose(self.ctx, late, other, self.total), choose(self.ctx, late, self.total, other)
        self.add_carry(other, late)
        self.total = self.combine(first, second)

    def warps(self, bits: list[int], images: list[int]) -> None:
        """Merge the blocks that lie in warps that differ in `bits`."""
        ctx = self.ctx
        if self.exchanged:
            ctx.barrier()
        self.exchanged = True
        parts = warps_in_order(ctx, self.op, self.layout, self.total, self.blocks, bits, self.done | linear.support_of(images))
        lane_bits = self.layout.in_bits("lane")
        columns = [0] * (lane_bits + self.layout.in_bits("warp"))
        for i, bit in enumerate(bits):
            columns[lane_bits + bit] = 1 << i
        index = ctx.once(f"warp along {columns}", lambda: linear.apply_columns(ctx, ctx.thread_id, columns))
        order = range(len(parts) - 1, -1, -1) if self.reverse else range(len(parts))
        running, before = None, parts[order[0]]
        for step, part in enumerate(order):
            if running is not None:
                here = ctx.emit("llvm.icmp", ctx.types.i1, (index, ctx.i32(part)), ctx.types.icmp("eq"))
                before = choose(self.ctx, here, running, before) if step > 1 else running
            running = parts[part] if running is None else self.combine(running, parts[part])
        later = ctx.emit("llvm.icmp", ctx.types.i1, (index, ctx.i32(order[0])), ctx.types.icmp("ne"))
        self.add_carry(before, later)
        self.total = running

    def add_carry(self, earlier: Vectors, condition: ir.Value) -> None:
        """Put `earlier` in front of the carry of the threads for which `condition` holds."""
        if self.carry is None:
            self.carry, self.has_carry = list(earlier), condition
            return
        joined = choose(self.ctx, self.has_carry, self.combine(earlier, self.carry), list(earlier))
        self.carry = choose(self.ctx, condition, joined, self.carry)
        self.has_carry = self.ctx.emit("llvm.or", self.ctx.types.i1, (self.has_carry, condition))

    def apply_carry(self) -> None:
        """Put the carry in front of every element."""
        if self.carry is None:
            return
        carried = self.combine(self.spread(self.carry, range(self.layout.in_size("register"))), self.prefix)
        self.prefix = choose(self.ctx, self.has_carry, carried, self.prefix)
        self.carry = self.has_carry = None
