"""Order the accesses that different threads make to shared memory.

Before: `tilegpu.offset` is set (see `tilegpu-allocate-shared`). Threads run apart between barriers.
After: between two accesses by different threads to overlapping bytes, of which one is a write, lies a `tilegpu.barrier` or an
op that is one: `tile.barrier`, a `named_barrier_sync` of all threads, `cluster_arrive` with `cluster_wait`, or an op with scratch, whose
lowering puts a barrier between its writes and its reads.

What asynchronous accesses mean here:
- `async_copy` writes when it is issued; its data is there for the issuing thread after an `async_wait`, for the others after a barrier
  behind that. With the attribute `tilegpu.slot_is_free` the pipeliner promises that a barrier already lies between it and the slot's
  readers.
- `wgmma` and TMA stores read when they are issued and again until the wait that completes them, so a barrier goes between that wait
  and the next write. Wgmmas end in order: a wait that leaves n in flight completes those behind which n others were issued.
- `tma_load` writes when it is issued; whoever waits on its mbarrier may read.
- An mbarrier is initialised by one thread and used by the others after a barrier.
- Accesses with the attribute `tilegpu.each_warp` are to memory that only the thread's own warp accesses like this: between two of these a
  barrier of each warp suffices, `tilegpu.barrier {tilegpu.each_warp}`.
The slots of a buffer count as one, except where their indices are constants.

A forward data-flow analysis over structured control flow. Each loop body is visited twice, whatever the nesting: once to summarise what
it leaves behind for its next iteration, once to place barriers. Barriers go as late as possible, but in front of a loop rather than into
it where only accesses before the loop call for them. Scalar conditions are uniform, so a barrier inside a branch is sound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mlir import ir

from tilewright.compiler.lowering.part_gather import is_pushed
from tilewright.compiler.lowering.scratch import scratch_bytes
from tilewright.compiler.lowering.shared_memory import buffer_bytes, slot_bytes

from ..analysis.buffers import Buffers, constant_slot, slot_count
from .registry import register

Interval = tuple[int, int]
"""Bytes [start, end) of the CTA's shared memory."""


@dataclass(slots=True)
class State:
    """What threads may still be doing: accesses that no barrier has ordered, and asynchronous ones that no wait has ended."""

    reads: set[Interval] = field(default_factory=set)
    writes: set[Interval] = field(default_factory=set)
    copies: set[Interval] = field(default_factory=set)
    products: dict[Interval, int] = field(default_factory=dict)
    """How many products at least were issued behind the last one that reads the bytes."""
    stores: set[Interval] = field(default_factory=set)
    own_reads: set[Interval] = field(default_factory=set)
    own_writes: set[Interval] = field(default_factory=set)
    own_copies: set[Interval] = field(default_factory=set)
    own_stores: set[Interval] = field(default_factory=set)
    """The `own` ones are those of warps to memory of their own."""

    def _sets(self) -> tuple[set[Interval], ...]:
        own = (self.own_reads, self.own_writes, self.own_copies, self.own_stores)
        return (self.reads, self.writes, self.copies, self.stores, *own)

    def copy(self) -> State:
        out = State()
        out.join(self)
        return out

    def join(self, other: State) -> None:
        """Add what may be going on in `other`."""
        for mine, others in zip(self._sets(), other._sets(), strict=True):
            mine |= others
        for read, behind in other.products.items():
            self.products[read] = min(behind, self.products.get(read, behind))

    def barrier(self) -> None:
        """All threads have got here."""
        self.reads.clear()
        self.writes.clear()
        self.warp_barrier()

    def warp_barrier(self) -> None:
        """All threads of this one's warp have got here."""
        self.own_reads.clear()
        self.own_writes.clear()

    def forget_pending(self) -> None:
        """Nothing asynchronous is under way."""
        for pending in (self.copies, self.products, self.stores, self.own_copies, self.own_stores):
            pending.clear()

    def conflicts(self, reads: Iterable[Interval], writes: Iterable[Interval], own: bool) -> bool:
        """Whether the accesses must wait for a barrier of all; `own`: they are of warps to memory of their own."""
        return _conflict(reads, writes, self.reads, self.writes) or (not own and self.conflicts_own(reads, writes))

    def conflicts_own(self, reads: Iterable[Interval], writes: Iterable[Interval]) -> bool:
        """Whether the accesses conflict with those of warps to memory of their own."""
        return _conflict(reads, writes, self.own_reads, self.own_writes)


def _conflict(reads: Iterable[Interval], writes: Iterable[Interval], other_reads: set[Interval], other_writes: set[Interval]) -> bool:
    return _overlap(reads, other_writes) or _overlap(writes, other_writes) or _overlap(writes, other_reads)


def _overlap(left: Iterable[Interval], right: set[Interval]) -> bool:
    return any(a < d and c < b for a, b in left for c, d in right)


@dataclass(slots=True)
class Event:
    """An op that matters here. `kind` says what it does after its accesses were checked; see `_apply`."""

    kind: str
    op: ir.Operation
    reads: list[Interval] = field(default_factory=list)
    writes: list[Interval] = field(default_factory=list)
    left: int = 0
    """What a wait leaves in flight."""
    own: bool = False
    bodies: list[list[Event]] = field(default_factory=list)
    summary: Summary | None = None


@dataclass(slots=True)
class Summary:
    """What one pass through some events does to whatever state they start in.

    `left`: what it leaves behind. `reads`, `writes`, and the `own` ones of warps: accesses that no barrier inside orders against those
    before. `waits`: kinds of its waits.
    """

    left: State = field(default_factory=State)
    reads: set[Interval] = field(default_factory=set)
    writes: set[Interval] = field(default_factory=set)
    own_reads: set[Interval] = field(default_factory=set)
    own_writes: set[Interval] = field(default_factory=set)
    waits: set[str] = field(default_factory=set)
    ordered: bool = False
    """A barrier is sure to have been passed."""


@register("tilegpu-insert-barriers")
def insert_barriers(module: ir.Operation) -> None:
    """Insert `tilegpu.barrier` where shared memory needs it."""
    num_warps = module.attributes["tilegpu.num_warps"] if "tilegpu.num_warps" in module.attributes else None
    width = module.attributes["tilegpu.threads_per_warp"] if "tilegpu.threads_per_warp" in module.attributes else None
    threads = ir.IntegerAttr(num_warps).value * ir.IntegerAttr(width).value if num_warps and width else 0
    for function in [op.operation for op in module.regions[0].blocks[0].operations]:
        if function.name != "func.func" or not len(function.regions[0].blocks):
            continue
        events = _Reader(function, threads).events(function.regions[0].blocks[0])
        places: list[tuple[ir.Operation, bool]] = []
        _run(events, State(), places.append)
        for op, own in places:
            attributes = {_EACH_WARP: ir.UnitAttr.get(module.context)} if own else {}
            ir.Operation.create("tilegpu.barrier", attributes=attributes, loc=op.location, ip=ir.InsertionPoint(op))


# ----------------------------------------------------------------------------------------------------------------------------------------
# From ops to events
# ----------------------------------------------------------------------------------------------------------------------------------------

# Op -> (kind, operands read, operands written), by operand number; negative numbers count from the end.
_ACCESSES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "tilegpu.local_load": ("access", (0,), ()),
    "tilegpu.local_store": ("access", (), (1,)),
    "tilegpu.async_copy": ("copy", (), (1,)),
    "tilegpu.wgmma": ("product", (0, 1), ()),
    "tilegpu.tma_reduce": ("store", (-1,), ()),
    "tilegpu.tma_store": ("store", (-1,), ()),
    "tilegpu.tma_scatter": ("store", (-1,), ()),
    "tilegpu.mbarrier_init": ("access", (), (0,)),
    "tilegpu.mbarrier_expect": ("use", (0,), ()),
    "tilegpu.mbarrier_arrive": ("use", (0,), ()),
    "tilegpu.mbarrier_wait": ("use", (0,), ()),
}
_SLOT_IS_FREE = "tilegpu.slot_is_free"
_EACH_WARP = "tilegpu.each_warp"
_TMA_LOADS = frozenset({"tilegpu.tma_load", "tilegpu.tma_gather"})
_WAITS = {"tilegpu.async_wait": "copies", "tilegpu.wgmma_wait": "products", "tilegpu.tma_store_wait": "stores"}
_BARRIERS = frozenset({"tilegpu.barrier", "tile.barrier", "tilegpu.cluster_wait"})
_LOOPS = frozenset({"scf.for", "scf.while"})


class _Reader:
    """Turns the ops of a function into events."""

    def __init__(self, function: ir.Operation, threads: int):
        self.threads = threads
        allocs: list[ir.Operation] = []
        _collect_allocs(function.regions[0].blocks[0], allocs)
        self.buffers = Buffers(allocs)
        self.offsets = [_offset(alloc) for alloc in allocs]

    def events(self, block: ir.Block) -> list[Event]:
        """Return the events of `block` in order, those of inner blocks inside."""
        events = []
        for view in block.operations:
            event = self._event(view.operation)
            if event is not None:
                events.append(event)
        return events

    def _event(self, op: ir.Operation) -> Event | None:
        name = op.name
        if name in _ACCESSES:
            kind, reads, writes = _ACCESSES[name]
            operands = op.operands
            if kind == "copy" and _SLOT_IS_FREE in op.attributes:
                kind = "free copy"
            own = _EACH_WARP in op.attributes and kind in ("access", "copy", "store")
            return Event(kind, op, self._bytes(operands, reads), self._bytes(operands, writes), own=own)
        if name == "tilegpu.local_alloc":
            return Event("access", op, [], self._buffer(op.results[0])) if len(op.operands) else None
        if name in _TMA_LOADS:
            buffer, mbarrier = _tma_operands(op)
            return Event("use", op, self._buffer(mbarrier), self._buffer(buffer))
        if name in _WAITS:
            return Event(_WAITS[name], op, left=ir.IntegerAttr(op.attributes["num"]).value)
        if name in _BARRIERS or (name == "tilegpu.named_barrier_sync" and self._is_full(op)):
            return Event("warp barrier" if _EACH_WARP in op.attributes else "barrier", op)
        if name in _LOOPS or name == "scf.if" or name == "tilegpu.warp_specialize":
            bodies = [self.events(block) for region in op.regions for block in region.blocks]
            if not any(bodies):
                return None
            if name == "scf.if":
                return Event("branch", op, bodies=bodies + ([[]] if len(bodies) == 1 else []))
            if name == "tilegpu.warp_specialize":
                return Event("roles", op, bodies=bodies)
            body = [event for part in bodies for event in part]
            return Event("loop", op, bodies=bodies, summary=_summarise(body))
        if name == "func.call":
            return Event("call", op)
        if name == "tile.exchange":
            return None if is_pushed(op) else Event("barrier", op)  # its memory is its own
        if name.startswith("tile") and (size := scratch_bytes(op)):
            offset = _offset(op)
            return Event("scratch", op, [], [(offset, offset + size)])
        return None

    def _bytes(self, operands, numbers: tuple[int, ...]) -> list[Interval]:
        return [interval for number in numbers for interval in self._buffer(operands[number])]

    def _buffer(self, value: ir.Value) -> list[Interval]:
        """The bytes that a buffer value may name; none for a tensor."""
        intervals = []
        for index in self.buffers.of(value):
            alloc = self.buffers.buffers[index].alloc.results[0]
            start, size = self.offsets[index], buffer_bytes(alloc.type)
            slot = _slot_of(value)
            if slot is not None and slot < slot_count(alloc):
                size = slot_bytes(alloc.type)
                start += slot * size
            intervals.append((start, start + size))
        return intervals

    def _is_full(self, op: ir.Operation) -> bool:
        return "tilegpu.turns" not in op.attributes and ir.IntegerAttr(op.attributes["threads"]).value == self.threads


def _collect_allocs(block: ir.Block, allocs: list[ir.Operation]) -> None:
    for view in block.operations:
        op = view.operation
        name = op.name
        if name == "tilegpu.local_alloc":
            allocs.append(op)
        elif name.startswith("scf.") or name == "tilegpu.warp_specialize":
            for region in op.regions:
                for inner in region.blocks:
                    _collect_allocs(inner, allocs)


def _offset(op: ir.Operation) -> int:
    if "tilegpu.offset" not in op.attributes:
        raise ValueError(f"{op.name} has no tilegpu.offset: run tilegpu-allocate-shared first")
    return ir.IntegerAttr(op.attributes["tilegpu.offset"]).value


def _slot_of(value: ir.Value) -> int | None:
    """The constant index of the slot that `value` is or is a view of."""
    owner = value.owner
    while not isinstance(owner, ir.Block) and owner.operation.name == "tilegpu.view":
        owner = owner.operation.operands[0].owner
    if isinstance(owner, ir.Block) or owner.operation.name != "tilegpu.slot":
        return None
    return constant_slot(owner.operation)


def _tma_operands(op: ir.Operation) -> tuple[ir.Value, ir.Value]:
    """(buffer, mbarrier) of a TMA load."""
    view = op.opview
    return view.buffer, view.mbarrier


# ----------------------------------------------------------------------------------------------------------------------------------------
# The analysis
# ----------------------------------------------------------------------------------------------------------------------------------------

Place = Callable[[tuple[ir.Operation, bool]], None]
"""Takes an op in front of which a barrier goes, and whether one of each warp suffices."""


def _run(events: list[Event], state: State, place: Place, summary: Summary | None = None) -> None:
    """Carry `state` through `events`, calling `place` for each op that needs a barrier in front.

    With `summary`, also note there what the events access before any barrier, and their waits.
    """
    for event in events:
        if event.kind == "branch":
            _run_branch(event, state, place, summary)
        elif event.kind == "roles":
            _run_roles(event, state, place, summary)
        elif event.kind == "loop":
            _run_loop(event, state, place, summary)
        else:
            if event.kind != "free copy":
                _check(event.op, event.reads, event.writes, state, place, summary, event.own)
            _apply(event, state, place, summary)


def _check(
    op: ir.Operation,
    reads: Iterable[Interval],
    writes: Iterable[Interval],
    state: State,
    place: Place,
    summary: Summary | None,
    own: bool = False,
) -> None:
    """Put a barrier in front of `op` if its accesses need one; `own`: they are of warps to memory of their own."""
    if state.conflicts(reads, writes, own):
        _barrier(op, state, place, summary)
    elif own and state.conflicts_own(reads, writes):
        place((op, True))
        state.warp_barrier()
    if summary is not None and not summary.ordered:
        (summary.own_reads if own else summary.reads).update(reads)
        (summary.own_writes if own else summary.writes).update(writes)


def _barrier(op: ir.Operation, state: State, place: Place, summary: Summary | None) -> None:
    place((op, False))
    state.barrier()
    if summary is not None:
        summary.ordered = True


def _apply(event: Event, state: State, place: Place, summary: Summary | None) -> None:
    """Change `state` by what a simple event does."""
    kind = event.kind
    if kind == "use":
        # What initialises the mbarrier anew must come behind.
        state.reads.update(event.reads)
    elif kind == "access":
        (state.own_reads if event.own else state.reads).update(event.reads)
        (state.own_writes if event.own else state.writes).update(event.writes)
    elif kind == "scratch":
        # Its own barrier lies between writing and reading the scratch.
        state.barrier()
        state.reads.update(event.writes)
        if summary is not None:
            summary.ordered = True
    elif kind in ("copy", "free copy"):
        (state.own_copies if event.own else state.copies).update(event.writes)
    elif kind == "product":
        state.reads.update(event.reads)
        state.products = {read: behind + 1 for read, behind in state.products.items()} | dict.fromkeys(event.reads, 0)
    elif kind == "store":
        (state.own_stores if event.own else state.stores).update(event.reads)
    elif kind == "barrier":
        state.barrier()
        if summary is not None:
            summary.ordered = True
    elif kind == "warp barrier":
        state.warp_barrier()
    elif kind == "call":
        # The callee has memory of its own, but may leave accesses to it behind; so does its next call.
        _barrier(event.op, state, place, summary)
    elif kind in _WAITS.values():
        _wait(kind, event.left, state)
        if summary is not None:
            summary.waits.add(kind)


def _wait(kind: str, left: int, state: State) -> None:
    """This thread's asynchronous accesses have ended, all but `left`; those of other threads not yet."""
    if kind == "products":
        ended = {read for read, behind in state.products.items() if behind >= left}
        state.reads |= ended
        state.products = {read: behind for read, behind in state.products.items() if read not in ended}
        return
    _may_have_ended(kind, state)
    if left == 0:
        for pending in (state.copies, state.own_copies) if kind == "copies" else (state.stores, state.own_stores):
            pending.clear()


def _may_have_ended(kind: str, state: State) -> None:
    """Some of this thread's asynchronous accesses may have ended."""
    if kind == "products":
        state.reads.update(state.products)
    elif kind == "copies":
        state.writes |= state.copies
        state.own_writes |= state.own_copies
    else:
        state.reads |= state.stores
        state.own_reads |= state.own_stores


def _run_branch(event: Event, state: State, place: Place, summary: Summary | None) -> None:
    before = state.copy()
    ordered = summary is not None and summary.ordered
    outcomes, all_ordered = [], True
    for body in event.bodies:
        after = before.copy()
        _run(body, after, place, summary)
        outcomes.append(after)
        if summary is not None:
            all_ordered = all_ordered and summary.ordered
            summary.ordered = ordered
    state.barrier()
    state.forget_pending()
    for after in outcomes:
        state.join(after)
    if summary is not None:
        summary.ordered = all_ordered


def _run_roles(event: Event, state: State, place: Place, summary: Summary | None) -> None:
    """Roles run side by side and order each other by mbarriers and named barriers; each is analysed by itself. A producer is one thread, in
    the warp whose thread it is that makes its mbarriers."""
    if state.reads or state.writes or state.own_reads or state.own_writes:
        _barrier(event.op, state, place, summary)
    outcomes = []
    names = [ir.StringAttr(name).value for name in ir.ArrayAttr(event.op.attributes["roles"])]
    for name, body in zip(names, event.bodies, strict=True):
        after = State()
        _run(body, after, place if name != "producer" else lambda _: None)
        outcomes.append(after)
    for after in outcomes:
        state.join(after)


def _run_loop(event: Event, state: State, place: Place, summary: Summary | None) -> None:
    """A barrier that only accesses before the loop ask for goes in front of it; then the body runs as in any iteration."""
    inside = event.summary
    _check(event.op, inside.reads, inside.writes, state, place, summary)
    _check(event.op, inside.own_reads, inside.own_writes, state, place, summary, True)
    if summary is not None:
        summary.waits |= inside.waits
    # What an iteration may start in: what came before the loop, or what the last iteration left, with what its waits ended.
    state.join(inside.left)
    for kind in inside.waits:
        _may_have_ended(kind, state)
    if summary is not None:
        return
    # The loop ends behind its first body (all of a `for`, the condition of a `while`), or a `for` does not run at all.
    after = state.copy()
    _run(event.bodies[0], after, place)
    state.join(after)
    for body in event.bodies[1:]:
        _run(body, after, place)


def _summarise(events: list[Event]) -> Summary:
    summary = Summary()
    _run(events, summary.left, lambda barrier: None, summary)
    return summary
