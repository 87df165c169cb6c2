"""Clusters: barriers of all CTAs of a program, and `tile.exchange` through distributed shared memory.

Before: every exchange has `tilegpu.offset`, the place of `scratch_bytes` bytes that only exchanges use, the same in every CTA.

Small parts that all want are stored to all (`part_gather.py`). Any other exchange writes a CTA's part to its own shared memory, meets the
other CTAs, and reads its new part from theirs. The memory may be written again, and a CTA may end, when all have read: each exchange
arrives for that at the barrier of the cluster once more, and whoever comes next waits. So wherever a kernel with such exchanges is, each
thread has arrived and not waited: from its entry on, and up to its end.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

from mlir import ir

from tilewright.compiler.layouts import LinearLayout, f2

from . import linear, part_gather, shared_access, vectors
from .asm import inline_asm
from .context import LoweringContext
from .convert_layout import registers_of_round
from .registry import rule
from .shared_memory import element_bytes

ARRIVE = "barrier.cluster.arrive.release.aligned;"
#: Where a fence went before: what is under way is not waited for.
ARRIVE_AFTER_FENCE = "barrier.cluster.arrive.relaxed.aligned;"
WAIT = "barrier.cluster.wait.acquire.aligned;"
_ALIGNMENT = 16


def arrive(ctx: LoweringContext) -> None:
    """Arrive at the barrier of the cluster; what was written before is seen behind the others' wait."""
    inline_asm(ctx, ARRIVE, "~{memory}", (), None)


def wait(ctx: LoweringContext) -> None:
    """Wait until all threads of the cluster have arrived."""
    inline_asm(ctx, WAIT, "~{memory}", (), None)


def meet(ctx: LoweringContext) -> None:
    """Wait for every thread of the program."""
    if ctx.facts.num_ctas == 1:
        ctx.barrier()
        return
    if ctx.role is not None:
        raise ValueError("the threads of a program cannot meet inside a role of its warps")
    if ctx.module.has_exchanges:
        wait(ctx)
    arrive(ctx)
    wait(ctx)
    if ctx.module.has_exchanges:
        arrive(ctx)


def enter(ctx: LoweringContext, exchanges: list[ir.Operation]) -> None:
    """At the entry of a kernel with these exchanges."""
    pushed = [op for op in exchanges if part_gather.is_pushed(op)]
    if pushed:
        part_gather.make_mbarriers(ctx, pushed)
        inline_asm(ctx, ARRIVE_AFTER_FENCE, "~{memory}", (), None)
        ctx.module.meets_later = not ctx.module.has_exchanges and is_at_top(pushed[0]) and not ctx.module.has_meetings
        if not ctx.module.meets_later:
            wait(ctx)
    if ctx.module.has_exchanges:
        arrive(ctx)


def is_at_top(op: ir.Operation) -> bool:
    """Whether an op is in the outermost block of its function, which all threads run."""
    return op.parent.operation.name == "func.func"


def meet_once(ctx: LoweringContext) -> None:
    """Wait, before the first store to another CTA, until all are there."""
    if ctx.module.meets_later:
        ctx.module.meets_later = False
        wait(ctx)


def leave(ctx: LoweringContext) -> None:
    """At the end of a kernel: other CTAs may still read this one's shared memory."""
    if ctx.module.has_exchanges:
        wait(ctx)


class Reading(NamedTuple):
    """From where each element of a part is read, in bits: for each register, thread and own rank bit the rank that holds it, and its
    row-major place in that CTA's part."""

    registers: tuple[tuple[int, int], ...]
    threads: tuple[tuple[int, int], ...]
    ranks: tuple[tuple[int, int], ...]


@lru_cache(maxsize=512)
def reading(layout: LinearLayout, shape: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...], from_first: bool) -> Reading:
    """How a CTA reads its part, in `layout`, of a tensor of `shape`: `before` and `after` are the packed coordinates that the bits of the
    rank add. Of copies it reads its own, or the first CTA's."""
    bits = sum(size.bit_length() - 1 for size in shape)
    inside = [bit for bit in range(bits) if 1 << bit not in after]  # the bits of the whole that those of the part are
    holder = {column: bit for bit, column in enumerate(before) if column}
    kept = [bit for bit in range(bits) if 1 << bit not in holder]

    def place(coordinate: int) -> tuple[int, int]:
        rank = sum(1 << bit for column, bit in holder.items() if coordinate & column)
        return rank, sum((coordinate >> bit & 1) << i for i, bit in enumerate(kept))

    def of_part(column: int) -> tuple[int, int]:
        return place(sum((column >> i & 1) << bit for i, bit in enumerate(inside)))

    ranks = []
    for bit, column in enumerate(after):
        rank, offset = place(column)
        ranks.append((rank | (0 if before[bit] or from_first else 1 << bit), offset))
    threads = layout.column("lane") + layout.column("warp")
    return Reading(tuple(map(of_part, layout.column("register"))), tuple(map(of_part, threads)), tuple(ranks))


def scratch_bytes(op: ir.Operation) -> int:
    """The bytes of shared memory that an exchange takes in each CTA; those of a pushed one are its own."""
    if part_gather.is_pushed(op):
        return part_gather.scratch_bytes(op)
    return sum(_area(value) for value in op.operands)


def _area(value: ir.Value) -> int:
    return -(-prod(value.type.shape) * element_bytes(value.type.element_type) // _ALIGNMENT) * _ALIGNMENT


@rule("tile.exchange")
def exchange(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    if ctx.role is not None:
        raise ValueError("the CTAs of a cluster cannot exchange data inside a role of their warps")
    if part_gather.is_pushed(op):
        meet_once(ctx)
        return part_gather.gather(ctx, op)
    shape = tuple(ir.DenseI32ArrayAttr(op.attributes["shape"]))
    before, after = part_gather.columns(op)
    base, areas = ctx.scratch(op), []
    wait(ctx)
    for old, vector in zip(op.operands, ctx.operands(op), strict=True):
        areas.append(base)
        _write(ctx, base, vector, ctx.layout(old))
        base = ctx.emit("llvm.getelementptr", base.type, (base,), ctx.types.const_gep_attrs(ctx.types.i8, _area(old)))
    arrive(ctx)
    wait(ctx)
    results = []
    for area, new in zip(areas, op.results, strict=True):
        info = ctx.tensor(new)
        plan = reading(info.layout, shape, before, after, "from_first" in op.attributes)
        results.append(_read(ctx, area, info.element, plan))
    arrive(ctx)
    return results


def _write(ctx: LoweringContext, base: ir.Value, vector: ir.Value, layout: LinearLayout) -> None:
    """Write the part to the CTA's own memory, in row-major order."""
    free = layout.free_masks()["register"]
    kept = [bit for bit in range(layout.in_bits("register")) if not free >> bit & 1]
    words = vectors.shuffle(ctx, shared_access.to_memory(ctx, vector), linear.images([1 << bit for bit in kept]))
    columns = {name: layout.column(name) for name in ("lane", "warp")}
    shared_access.store(ctx, base, words, {"register": tuple(layout.column("register")[bit] for bit in kept), **columns})


def _read(ctx: LoweringContext, area: ir.Value, element: ir.Type, plan: Reading) -> ir.Value:
    """Read the new part from the CTAs that hold it: registers of one CTA after those of another."""
    t = ctx.types
    memory = shared_access.memory_element(ctx, element)
    own_rank, own_offset = ([pair[i] for pair in plan.ranks] for i in (0, 1))
    rank = linear.apply_columns(ctx, ctx.cluster_rank, own_rank)
    thread_rank = [pair[0] for pair in plan.threads]
    if any(thread_rank):
        rank = ctx.emit("llvm.xor", t.i32, (rank, linear.apply_columns(ctx, ctx.thread_id, thread_rank)))
    if any(own_offset):
        offset = linear.apply_columns(ctx, ctx.cluster_rank, own_offset)
        area = ctx.emit("llvm.getelementptr", area.type, (area, offset), t.gep_attrs(memory))
    lanes = ctx.facts.threads_per_warp.bit_length() - 1
    threads = tuple(pair[1] for pair in plan.threads)
    register_ranks = tuple(pair[0] for pair in plan.registers)
    offsets = tuple(pair[1] for pair in plan.registers)
    loaded, order = [], []
    for target in sorted(set(linear.images(register_ranks))):
        registers, masks = registers_of_round(register_ranks, target)
        start = f2.apply(offsets, registers[0])
        columns = {"register": tuple(f2.apply(offsets, mask) for mask in masks), "lane": threads[:lanes], "warp": threads[lanes:]}
        holder = ctx.emit("llvm.xor", t.i32, (rank, ctx.i32(target))) if target else rank
        remote = ctx.call_intrinsic("llvm.nvvm.mapa.shared.cluster", t.ptr_cluster, (area, holder))
        loaded.append(shared_access.load(ctx, remote, memory, columns, start, matrix=False))
        order += registers
    position = {register: i for i, register in enumerate(order)}
    together = vectors.shuffle(ctx, vectors.concat(ctx, loaded), [position[r] for r in range(len(order))])
    return shared_access.from_memory(ctx, together, element)
