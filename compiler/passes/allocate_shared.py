"""Place buffers and per-op scratch in the CTA's shared memory.

Before: every `tilegpu.local_alloc` is a buffer of its own; layouts are final.
After: every `tilegpu.local_alloc`, and every op that needs scratch to be lowered, has `tilegpu.offset` (bytes, i32); the module has
`tilegpu.shared`, the bytes in use. Two of them share memory only where they are never alive at once. What is alive at once is what
program order says, with each loop that a value lives across taken as a whole; roles of `tilegpu.warp_specialize` run side by side, so
what one of them uses is disjoint from what another one does. The memory of an mbarrier is used for nothing else: it would have to be
invalidated first; nor is that of exchanges between CTAs, which they share: other CTAs read it while this one goes on. An asynchronous
access keeps its buffer alive up to a wait that leaves nothing in flight, small scratch stays alive up to the next op with scratch.
Threads may still be at their last access when others start to reuse the memory: `tilegpu-insert-barriers` orders them.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from itertools import zip_longest

from mlir import ir

from tilewright.compiler.lowering import cluster
from tilewright.compiler.lowering.part_gather import is_pushed
from tilewright.compiler.lowering.scratch import ALIGNMENT, scratch_alignment, scratch_bytes
from tilewright.compiler.lowering.shared_memory import buffer_alignment, buffer_bytes, is_mbarrier

from ..analysis.buffers import Buffers
from ..analysis.tree import key
from .registry import register

_LOOPS = frozenset({"scf.for", "scf.while"})
_NESTING = _LOOPS | {"scf.if", "tilegpu.warp_specialize"}

# An op that goes on accessing its buffers after it was issued -> the wait that ends that where its `num` is 0.
_ENDED_BY = {
    "tilegpu.wgmma": "tilegpu.wgmma_wait",
    "tilegpu.async_copy": "tilegpu.async_wait",
    "tilegpu.tma_store": "tilegpu.tma_store_wait",
    "tilegpu.tma_reduce": "tilegpu.tma_store_wait",
    "tilegpu.tma_scatter": "tilegpu.tma_store_wait",
}
_WAITS = frozenset(_ENDED_BY.values())

# Scratch of up to this many bytes is not reused by the next op with scratch, which then need not wait until all threads have read it: two
# reductions in a row take turns between two places, with one barrier each.
_SMALL_SCRATCH = 512


@dataclass(slots=True, eq=False)
class _Request:
    """Memory for `op`, alive from position `start` to `end` inclusive; `role`, if all of that is inside one role: (position of the
    `warp_specialize`, number of the role)."""

    op: ir.Operation
    size: int
    alignment: int
    start: int
    end: int
    role: tuple[int, int] | None
    offset: int = 0

    def meets(self, other: _Request) -> bool:
        """Whether both may be alive at once."""
        if self.start <= other.end and other.start <= self.end:
            return True
        roles = self.role, other.role
        return None not in roles and self.role[0] == other.role[0] and self.role[1] != other.role[1]


@dataclass(slots=True)
class _Order:
    """Positions of the ops of a function in program order."""

    positions: dict[int, int] = field(default_factory=dict)
    whole: list[tuple[int, int]] = field(default_factory=list)
    """Loops, inner ones first, and roles: (first position, last position). What is alive inside and outside is alive in all of it."""
    roles: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(first position, last position, position of the `warp_specialize`, number) of each role."""
    waits: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Per kind of wait, those that leave nothing in flight: (position, position of the start of its block)."""
    allocs: list[ir.Operation] = field(default_factory=list)
    scratch: list[tuple[ir.Operation, int]] = field(default_factory=list)
    exchanges: list[ir.Operation] = field(default_factory=list)
    count: int = 0

    def visit(self, block: ir.Block) -> None:
        """Number the ops of `block` and of the control flow inside."""
        first = self.count
        for view in block.operations:
            op = view.operation
            name = op.name
            position = self.positions[key(op)] = self.count
            self.count += 1
            if name in _NESTING:
                for number, region in enumerate(op.regions):
                    start = self.count
                    for inner in region.blocks:
                        self.visit(inner)
                    if name == "tilegpu.warp_specialize":
                        self.roles.append((start, self.count, position, number))
                        self.count += 1
                if name != "scf.if":
                    self.whole.append((position, self.count))
                self.count += 1
            elif name == "tilegpu.local_alloc":
                self.allocs.append(op)
            elif name in _WAITS:
                if ir.IntegerAttr(op.attributes["num"]).value == 0:
                    self.waits.setdefault(name, []).append((position, first))
            elif name == "tile.exchange":
                self.exchanges.append(op)
            elif name.startswith("tile") and (size := scratch_bytes(op)):
                self.scratch.append((op, size))

    def end_of(self, op: ir.Operation) -> int:
        """Return the position up to which `op` accesses its buffers."""
        position = self.positions[key(op)]
        wait = _ENDED_BY.get(op.name)
        if wait is None:
            return position
        # A wait counts if it is sure to run after `op`: its block encloses `op`.
        return next((w for w, block in self.waits.get(wait, ()) if w > position and block <= position), self.count)

    def extent(self, start: int, end: int) -> tuple[int, int]:
        """Widen a life span to the whole of each loop, and of each `warp_specialize`, that it enters or leaves."""
        for first, last in self.whole:
            inside = first < start and end < last
            if start <= last and end >= first and not inside:
                start, end = min(start, first), max(end, last)
        return start, end

    def role(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the role that a life span lies inside."""
        return next((role for first, last, *role in self.roles if first <= start and end <= last), None)


@register("tilegpu-allocate-shared")
def allocate_shared(module: ir.Operation) -> None:
    """Set `tilegpu.offset` on ops that hold shared memory and `tilegpu.shared` on the module."""
    total = 0
    exchanges: list[ir.Operation] = []
    for function in [op.operation for op in module.regions[0].blocks[0].operations]:
        if function.name == "func.func" and len(function.regions[0].blocks):
            order = _Order()
            for block in function.regions[0].blocks:
                order.visit(block)
            exchanges += order.exchanges
            # Functions that were not inlined never share memory with their callers.
            total = _place(_requests(order), total)
    if exchanges:
        total = _place_exchanges(exchanges, _align(total, ALIGNMENT))
    module.attributes["tilegpu.shared"] = _i32(total)


def _place_exchanges(exchanges: list[ir.Operation], offset: int) -> int:
    """Give exchanges between CTAs their memory from `offset` on; return its end. Each one that others store to has its own."""
    for op in exchanges:
        if is_pushed(op):
            op.attributes["tilegpu.offset"] = _i32(offset)
            offset = _align(offset + cluster.scratch_bytes(op), ALIGNMENT)
    pulled = [op for op in exchanges if not is_pushed(op)]
    for op in pulled:
        op.attributes["tilegpu.offset"] = _i32(offset)
    return offset + max(map(cluster.scratch_bytes, pulled), default=0)


def _i32(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def _requests(order: _Order) -> list[_Request]:
    requests = []
    for buffer in Buffers(order.allocs).buffers:
        position = order.positions[key(buffer.alloc)]
        first = min((order.positions[key(op)] for op in buffer.uses), default=position)
        last = max(map(order.end_of, buffer.uses), default=position)
        start, end = order.extent(min(position, first), max(position, last))
        type_ = buffer.alloc.results[0].type
        if is_mbarrier(type_):
            start, end = 0, order.count
        requests.append(_Request(buffer.alloc, buffer_bytes(type_), buffer_alignment(type_), start, end, order.role(start, end)))
    following = [order.positions[key(op)] for op, _ in order.scratch[1:]]
    for (op, size), next_position in zip_longest(order.scratch, following):
        position = order.positions[key(op)]
        end = next_position if next_position is not None and size <= _SMALL_SCRATCH else position
        start, end = order.extent(position, end)
        requests.append(_Request(op, size, scratch_alignment(op), start, end, order.role(start, end)))
    return requests


def _place(requests: list[_Request], base: int) -> int:
    """Give every request an offset of at least `base`, the largest first; return the end of the memory in use."""
    placed: list[_Request] = []
    for request in sorted(requests, key=lambda r: (-r.size, r.start)):
        offset = base
        for other in placed:
            if not request.meets(other):
                continue
            if _align(offset, request.alignment) + request.size <= other.offset:
                break
            offset = max(offset, other.offset + other.size)
        request.offset = _align(offset, request.alignment)
        request.op.attributes["tilegpu.offset"] = _i32(request.offset)
        insort(placed, request, key=lambda r: r.offset)
    return max((r.offset + r.size for r in requests), default=base)


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
