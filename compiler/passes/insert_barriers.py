"""`tilegpu-insert-barriers`: keep the threads of a CTA apart where they exchange data through shared memory.

Before: shared memory is allocated (`tilegpu-allocate-shared`); fences between the generic and the asynchronous proxy stand where they must.
After: a `tilegpu.barrier` stands before every op that reads bytes which another thread may have written since the last barrier, or writes
bytes which another thread may still read or write.

One forward walk over the structured control flow carries the byte ranges touched since the last barrier. A loop body is walked a second time
with what its end leaves open, which reaches the fixpoint: a barrier found by then closes the path around the loop. The rules:

- An op with scratch synchronises inside, so it closes everything before it and leaves its scratch being read.
- `async_copy` has written when `async_wait` returns; `wgmma` and the TMA stores have read when their wait returns. Until then a ring of slots keeps
  writers and readers apart, which is the pipeliner's promise; the waits turn what is in flight into plain accesses.
- What `tma_load` writes is ordered by its mbarrier; it must only not overtake reads.
- Roles of `warp_specialize` meet at mbarriers and named barriers alone: their regions are left as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir import ir

from ..analysis.buffers import Order, program_order
from ..lowering.scratch import scratch_bytes
from ..lowering.shared_memory import buffer_bytes
from .building import Builder
from .registry import register

Range = tuple[int, int]

_READS = frozenset({"tilegpu.local_load", "tilegpu.mbarrier_wait", "tilegpu.mbarrier_arrive", "tilegpu.mbarrier_expect"})
_WRITES = frozenset({"tilegpu.local_store", "tilegpu.mbarrier_init"})
_ASYNC_READS = {
    "tilegpu.wgmma": "tilegpu.wgmma_wait",
    "tilegpu.tma_store": "tilegpu.tma_store_wait",
    "tilegpu.tma_reduce": "tilegpu.tma_store_wait",
    "tilegpu.tma_scatter": "tilegpu.tma_store_wait",
}
_BARRIERS = frozenset({"tilegpu.barrier", "tile.barrier", "func.call"})


@dataclass
class _State:
    """Byte ranges touched since the last barrier, and those in flight under the wait that ends them."""

    reads: set[Range] = field(default_factory=set)
    writes: set[Range] = field(default_factory=set)
    in_flight: dict[str, set[Range]] = field(default_factory=dict)

    def copy(self) -> _State:
        return _State(set(self.reads), set(self.writes), {k: set(v) for k, v in self.in_flight.items()})

    def join(self, other: _State) -> None:
        self.reads |= other.reads
        self.writes |= other.writes
        for wait, ranges in other.in_flight.items():
            self.in_flight.setdefault(wait, set()).update(ranges)

    def covers(self, other: _State) -> bool:
        return (
            other.reads <= self.reads
            and other.writes <= self.writes
            and all(ranges <= self.in_flight.get(wait, set()) for wait, ranges in other.in_flight.items())
        )

    def synchronise(self) -> None:
        self.reads.clear()
        self.writes.clear()


@register("tilegpu-insert-barriers")
def insert_barriers(module: ir.Operation) -> None:
    """Run the pass on `module`."""
    for function in module.regions[0].blocks[0].operations:
        if function.operation.name == "func.func":
            _Walk(function.operation).run()


class _Walk:
    """The walk over one function."""

    def __init__(self, function: ir.Operation):
        self.function = function
        self.order: Order = program_order(function)
        self.ranges = {root: _range(root) for roots in self.order.roots.values() for root in roots}
        self.needed: dict[ir.Operation, None] = {}

    def run(self) -> None:
        state = _State()
        for region in self.function.regions:
            for block in region.blocks:
                self._block(block, state)
        for op in self.needed:
            Builder.before(op).op("tilegpu.barrier", [], [])

    def _block(self, block: ir.Block, state: _State) -> None:
        for op in block.operations:
            self._op(op.operation, state)

    def _op(self, op: ir.Operation, state: _State) -> None:
        name = op.name
        if name in ("scf.for", "scf.while"):
            self._loop(op, state)
        elif name == "scf.if":
            self._branches(op, state)
        elif name in _BARRIERS:
            state.synchronise()
        elif name.startswith("tilegpu.") or "tilegpu.offset" in op.attributes:
            self._access(op, state)

    def _loop(self, op: ir.Operation, state: _State) -> None:
        while True:
            entry = state.copy()
            for region in op.regions:
                self._block(region.blocks[0], state)
            if entry.covers(state):
                break
            state.join(entry)
        if op.name == "scf.for":
            state.join(entry)

    def _branches(self, op: ir.Operation, state: _State) -> None:
        before = state.copy()
        joined = None
        for region in op.regions:
            branch = before.copy()
            if len(region.blocks):
                self._block(region.blocks[0], branch)
            if joined is None:
                joined = branch
            else:
                joined.join(branch)
        state.reads, state.writes, state.in_flight = joined.reads, joined.writes, joined.in_flight

    def _access(self, op: ir.Operation, state: _State) -> None:
        name = op.name
        if name == "tilegpu.local_alloc":
            if len(op.operands):
                self._write(op, state, self._touched(op.results[0]))
        elif name in _READS:
            self._read(op, state, self._touched(op.operands[0]))
        elif name in _WRITES:
            self._write(op, state, self._touched(op.operands[-1] if name == "tilegpu.local_store" else op.operands[0]))
        elif name in _ASYNC_READS:
            touched = {r for operand in op.operands for r in self._touched(operand)}
            self._require(op, state, touched, after_reads=False)
            state.in_flight.setdefault(_ASYNC_READS[name], set()).update(touched)
        elif name == "tilegpu.async_copy":
            touched = {r for operand in op.operands for r in self._touched(operand)}
            self._require(op, state, touched, after_reads=True)
            state.in_flight.setdefault("tilegpu.async_wait", set()).update(touched)
        elif name in ("tilegpu.tma_load", "tilegpu.tma_gather"):
            touched = {r for operand in op.operands for r in self._touched(operand)}
            self._require(op, state, touched, after_reads=True)
        elif name in state.in_flight:
            (state.writes if name == "tilegpu.async_wait" else state.reads).update(state.in_flight[name])
            if ir.IntegerAttr(op.attributes["num"]).value == 0:
                del state.in_flight[name]
        elif "tilegpu.offset" in op.attributes and (size := scratch_bytes(op)):
            offset = ir.IntegerAttr(op.attributes["tilegpu.offset"]).value
            touched = {(offset, offset + size)}
            self._require(op, state, touched, after_reads=True)
            state.synchronise()
            state.reads |= touched

    def _read(self, op: ir.Operation, state: _State, touched: set[Range]) -> None:
        self._require(op, state, touched, after_reads=False)
        state.reads |= touched

    def _write(self, op: ir.Operation, state: _State, touched: set[Range]) -> None:
        self._require(op, state, touched, after_reads=True)
        state.writes |= touched

    def _require(self, op: ir.Operation, state: _State, touched: set[Range], after_reads: bool) -> None:
        """Ask for a barrier before `op` if bytes of `touched` are open: written, or (for a writer) read."""
        if op in self.needed or _overlap(touched, state.writes) or (after_reads and _overlap(touched, state.reads)):
            self.needed[op] = None
            state.synchronise()

    def _touched(self, value: ir.Value) -> set[Range]:
        return {self.ranges[root] for root in self.order.roots_of(value)}


def _range(root: ir.Value) -> Range:
    offset = ir.IntegerAttr(root.owner.attributes["tilegpu.offset"]).value
    return (offset, offset + buffer_bytes(root.type))


def _overlap(a: set[Range], b: set[Range]) -> bool:
    return any(x[0] < y[1] and y[0] < x[1] for x in a for y in b)
