"""`tilegpu-allocate-shared`: place every buffer and every op's scratch in the CTA's shared memory.

Before: ttgir. After: each `tilegpu.local_alloc` and each op that needs scratch (see `lowering.scratch`) has `tilegpu.offset`, in bytes; the
module has `tilegpu.shared`, the bytes that a CTA needs.

A buffer lives from its allocation to its last use; a use inside of a loop that does not contain the allocation lasts to the end of that loop.
An asynchronous reader or writer keeps its buffer until the wait that leaves nothing in flight. Scratch lives for its op alone. Memory is given
first-fit, largest first: the classic heuristic for interval colouring, within a few percent of the maximum live size on real kernels.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from mlir import ir

from ..analysis.buffers import Order, Step, program_order
from ..lowering.scratch import ALIGNMENT, scratch_bytes
from ..lowering.shared_memory import buffer_alignment, buffer_bytes
from .registry import register

#: ops that go on using a buffer after they return -> the op that waits for them
_WAITED_BY = {
    "tilegpu.wgmma": "tilegpu.wgmma_wait",
    "tilegpu.async_copy": "tilegpu.async_wait",
    "tilegpu.tma_store": "tilegpu.tma_store_wait",
    "tilegpu.tma_reduce": "tilegpu.tma_store_wait",
    "tilegpu.tma_scatter": "tilegpu.tma_store_wait",
}


@dataclass
class _Area:
    """A piece of memory in need of a place: `size` bytes at a multiple of `alignment`, alive for the ops numbered `start` to `end`."""

    op: ir.Operation
    size: int
    alignment: int
    start: int
    end: int
    offset: int = 0


@register("tilegpu-allocate-shared")
def allocate_shared(module: ir.Operation) -> None:
    """Run the pass on `module`."""
    context = module.context
    i32 = ir.IntegerType.get_signless(32, context)
    total = 0
    functions = [op.operation for op in module.regions[0].blocks[0].operations if op.operation.name == "func.func"]
    # A function that is called keeps its memory apart from all callers; kernels share what lies above.
    for function in sorted(functions, key=_is_kernel):
        areas = _areas(program_order(function))
        top = _place(areas, total)
        for area in areas:
            area.op.attributes["tilegpu.offset"] = ir.IntegerAttr.get(i32, area.offset)
        total = max(total, top)
    module.attributes["tilegpu.shared"] = ir.IntegerAttr.get(i32, total)


def _is_kernel(function: ir.Operation) -> bool:
    attributes = function.attributes
    return "sym_visibility" not in attributes or ir.StringAttr(attributes["sym_visibility"]).value != "private"


def _areas(order: Order) -> list[_Area]:
    """Collect what needs memory, with live ranges."""
    drains = _drains(order)
    areas: list[_Area] = []
    by_root: dict[ir.Value, _Area] = {}
    loops: dict[ir.Value, tuple[Step, ...]] = {}
    for step in order.steps:
        op = step.op
        if op.name == "tilegpu.local_alloc":
            buffer = op.results[0]
            area = _Area(op, buffer_bytes(buffer.type), buffer_alignment(buffer.type), step.start, step.end)
            by_root[buffer], loops[buffer] = area, step.loops
            areas.append(area)
            continue
        size = scratch_bytes(op)
        if size:
            areas.append(_Area(op, size, ALIGNMENT, step.start, step.end))
        if not order.roots:
            continue
        for operand in op.operands:
            for root in order.roots_of(operand):
                area = by_root[root]
                area.end = max(area.end, _last_use(step, loops[root], drains))
    return areas


def _last_use(step: Step, around_alloc: tuple[Step, ...], drains: dict[str, list[int]]) -> int:
    """The position to which a use at `step` of a buffer that was made inside of the loops `around_alloc` lasts."""
    outer = step.loops[len(around_alloc) :]
    end = outer[0].end if outer else step.end
    waiter = _WAITED_BY.get(step.op.name)
    if waiter is None:
        return end
    positions = drains[waiter]
    found = bisect_left(positions, end)
    return positions[found] if found < len(positions) else drains[""][0]


def _drains(order: Order) -> dict[str, list[int]]:
    """Positions of the waits that leave nothing in flight, by name; under "" the end of the function."""
    drains: dict[str, list[int]] = {name: [] for name in _WAITED_BY.values()}
    for step in order.steps:
        if step.op.name in drains and ir.IntegerAttr(step.op.attributes["num"]).value == 0:
            drains[step.op.name].append(step.start)
    drains[""] = [len(order.steps)]
    return drains


def _place(areas: list[_Area], base: int) -> int:
    """Give each area the lowest offset from `base` that no living neighbour holds; returns the first byte above all of them."""
    placed: list[_Area] = []
    for area in sorted(areas, key=lambda a: (-a.alignment, -a.size, a.start)):
        neighbours = sorted((p for p in placed if p.start <= area.end and area.start <= p.end), key=lambda p: p.offset)
        offset = _aligned(base, area.alignment)
        for other in neighbours:
            if other.offset >= offset + area.size:
                break
            offset = max(offset, _aligned(other.offset + other.size, area.alignment))
        area.offset = offset
        placed.append(area)
    return max((a.offset + a.size for a in areas), default=base)


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
