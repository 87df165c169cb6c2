"""`tilegpu-pipeline`: loads run ahead of the loop that uses them, into shared memory.

Before: innermost `scf.for` loops with `tile.load` or `tile.descriptor_load` whose values reach a dot, directly through
`tilegpu.local_alloc` or through registers; or loops over programs (`tile.programs`), and those that only read memory, without dots;
`tilegpu-lower-dots` and `tilegpu-place-descriptors` have run.
After: each such load is a `tilegpu.async_copy` into one slot of a ring, issued iterations ahead:

    copies of the first iterations, one group for each
    for …:
        async_wait                     this iteration's slot has arrived
        first wgmma of the body
        copies for a later iteration   into the slot whose readers are done
        the rest of the body
    async_wait num = 0

A slot's readers are done when all threads have passed the barrier behind `async_wait`, if the iteration before waited for its wgmmas. Where
accumulators stay in flight (`tilegpu-overlap-wgmma`), the wgmma of the iteration before may still read: then the ring has one slot more and
copies go where the iteration before that one read, or, without room for a slot more, behind the wait for that wgmma. Without wgmma the
copies stand at the top of the body.

A wgmma on something computed from another wgmma's result (attention) is issued one iteration late, together with the loads that only it
needs; the loop then carries its operands instead of its result, and the last one runs behind the loop. In the first iteration it
multiplies zeros.

Descriptor loads become `tilegpu.tma_load`s at the places of the copies. Each slot has an mbarrier, which the copies of one iteration count
on together; instead of `async_wait` the body waits for the mbarrier of its slot, with a parity that changes each time around the ring.

Address computations are repeated for the iteration ahead; where it lies beyond the loop's end, the copy is masked off. What they load
themselves (indices, pages of a table) is loaded into registers one iteration before the copy is issued that needs it.
A vector that meets the result of a dot is copied by TMA with the blocks of its iteration, if all of these are and it lies in memory as one
piece (`bulk_vectors`). Else it is loaded where it stands, by every thread for itself, while the dot is computed.
`num_stages` - 1 is the number of iterations that loads run ahead. A loop's attribute `tile.num_stages` overrides the option. Loops whose
slots do not fit into shared memory get fewer stages. A loop without dots needs bytes on their way rather than stages: it gets slots until
it has enough of them, or, where it asks for one stage, none. There each warp waits for its own copies only, with no barrier.
A loop over programs that may take them from a queue does so (`program_queue.py`).
What `tilegpu-schedule` wrote on a loop and its operations is carried out as it says.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.analysis.early_products import Early, early_product, threads_of
from tilewright.compiler.analysis.loop_slice import GLOBAL_WRITES, PROGRAMS, Loop
from tilewright.compiler.analysis.register_pressure import MEETINGS
from tilewright.compiler.analysis.schedule import AHEAD, EARLY, LATE, SCHEDULED, SLOTS, given
from tilewright.compiler.analysis.tree import key
from tilewright.compiler.analysis.wgmma_loops import MAX_REGISTERS, carries_accumulators, delayed_wgmmas
from tilewright.compiler.encoding import layout_of, shared_of
from tilewright.compiler.layouts import dim_order, identity, is_replicated, shared_vector_width
from tilewright.compiler.lowering.shared_memory import buffer_bytes
from tilewright.compiler.multiprocessor import REGISTERS, THREAD_REGISTERS
from tilewright.dialects import tilegpu

from .assign_layouts import RUN
from .building import collect, defining, is_zero, walk
from .bulk_vectors import can_be_bulk, make_bulk, run_layout
from .diagnostics import user_error
from .loop_expansion import Copy, Expansion, Plan
from .lower_tma import described_buffer
from .program_queue import QueuedExpansion, takes_from_queue
from .registry import register

_LOADS = frozenset({"tile.load", "tile.descriptor_load"})
_DOTS = frozenset({"tilegpu.wgmma", "tilegpu.mma", "tile.dot"})
# cp.async moves 4, 8 or 16 bytes.
_MIN_COPY_BYTES = 4
_SLOT_ALIGNMENT = 1024
#: Registers of a thread that a loop needs beside products that run late and their operands.
_OTHER_REGISTERS = 32
#: Of loops without dots: the bytes that the copies of a CTA should have on their way, and the most slots. On the H200, sums of 8192 columns
#: in blocks of 8 KB, one CTA on a multiprocessor, took 99, 79, 69, 64.5 and 64 us with 3, 4, 5, 6 and 8 slots (reading as much: 64).
_BYTES_AHEAD, _MOST_SLOTS = 56 * 1024, 8
#: A multiprocessor should hold two CTAs, and 16 warps.
_FEWEST_CTAS, _FEWEST_WARPS = 2, 16
#: Slots for loads that run two iterations ahead, so that a product may run one.
_EARLY_SLOTS = 3


@register("tilegpu-pipeline", only_for=("scf.for",))
def pipeline(module: ir.Operation, *, num_stages: int = 3, shared_limit: int = 227 * 1024, maxnreg: int = THREAD_REGISTERS) -> None:
    """Run on a module; see the file's docstring. `shared_limit` is the shared memory of a CTA in bytes, `maxnreg` the registers of a
    thread."""
    num_warps = ir.IntegerAttr(module.attributes["tilegpu.num_warps"]).value
    for op in innermost_loops(module):
        loop = Loop(op)
        plan = plan_loop(loop, num_stages, num_warps, shared_limit, maxnreg)
        if plan is not None and any(copy.bulk for copy in plan.copies):
            loop, plan = _with_bulk(loop, plan)
        if plan is not None:
            (QueuedExpansion if takes_from_queue(loop, plan) else Expansion)(loop, plan).run()
    if SCHEDULED in module.attributes:
        del module.attributes[SCHEDULED]


def innermost_loops(module: ir.Operation) -> list[ir.Operation]:
    """Return the loops of all functions that hold no other loop."""
    loops = [op for function in collect(module, "func.func") for op in collect(function, "scf.for")]
    return [op for op in loops if not collect(op, "scf.for", "scf.while")]


def plan_loop(loop: Loop, num_stages: int, num_warps: int, shared_limit: int, maxnreg: int) -> Plan | None:
    """Decide how to pipeline a loop, as far as its schedule leaves that open; None if it stays as it is."""
    op = loop.op
    slots = given(op, SLOTS)
    stages = ir.IntegerAttr(op.attributes["tile.num_stages"]).value if "tile.num_stages" in op.attributes else num_stages
    copies = _copies(loop) if (slots or stages) > 1 else []
    if not copies:
        return None
    delayed = delayed_wgmmas(loop, {c.alloc[0] for c in copies if c.alloc}, min(MAX_REGISTERS, maxnreg - _OTHER_REGISTERS))
    for_roles = _asks_for_roles(op)
    vectors = {copy.position: copy for copy in _bulk_copies(loop)} if not delayed and not for_roles else {}
    blocks = [copy for copy in copies if copy.position not in vectors]
    if blocks and all(copy.by_tma for copy in blocks):
        copies = [*blocks, *vectors.values()]
    for copy in copies:
        copy.delay = int(any(d.alloc in copy.alloc for d in delayed))
    in_flight = not delayed and carries_accumulators(loop)
    early = None if delayed or in_flight or for_roles else _early(loop, copies, maxnreg)
    if slots is not None:
        lag = slots - 1 - _distance(loop, copies, slots)
        return Plan(copies, delayed, slots, lag, in_flight and not lag, early.issue if early and slots - lag >= _EARLY_SLOTS else None)
    room = shared_limit - _bytes_outside(op)
    per_slot = sum(c.slot_bytes if c.bulk else -(-c.slot_bytes // _SLOT_ALIGNMENT) * _SLOT_ALIGNMENT for c in copies)
    if _streams(loop) and "tile.num_stages" not in op.attributes:
        stages = min(1 - -_BYTES_AHEAD // per_slot, _MOST_SLOTS)
        room //= max(_FEWEST_CTAS, _FEWEST_WARPS // num_warps)
    slots = min(stages, max(1, room // per_slot))
    if slots < 2:
        return None
    is_asked = early is not None and given(loop.ops[early.issue], LATE) == EARLY
    if early is not None and (is_asked or _has_room(loop, copies, early, slots, per_slot, shared_limit)):
        return Plan(copies, delayed, max(slots, _EARLY_SLOTS), 0, False, early.issue)
    # One slot more, if it leaves as many CTAs on a multiprocessor, saves a barrier in each iteration. TMA needs none: its copies stand
    # behind the wait, and the barrier that they need there comes while wgmmas run.
    fits = (slots + 1) * per_slot <= room and shared_limit // ((slots + 1) * per_slot) == shared_limit // (slots * per_slot)
    extra = in_flight and fits and not all(c.by_tma for c in copies)
    return Plan(copies, delayed, slots + extra, int(extra), in_flight and not extra)


def _asks_for_roles(op: ir.Operation) -> bool:
    """Whether the user asks for roles, in which a producer makes the copies: `tilegpu-warp-specialize` may still come to that."""
    return "tile.warp_specialize" in op.attributes and ir.BoolAttr(op.attributes["tile.warp_specialize"]).value


def _early(loop: Loop, copies: list[Copy], maxnreg: int) -> Early | None:
    """Return the product of a loop that should be issued an iteration early, if TMA makes all of its copies."""
    blocks = {key(loop.ops[copy.alloc[0]]) for copy in copies if copy.alloc}

    def is_block(buffer: ir.Value) -> bool:
        op = defining(buffer)
        return op is not None and key(op) in blocks

    if not all(copy.by_tma for copy in copies):
        return None
    return early_product(loop, is_block, min(maxnreg, REGISTERS // threads_of(loop.op)))


def _has_room(loop: Loop, copies: list[Copy], early: Early, slots: int, per_slot: int, shared_limit: int) -> bool:
    """Whether an early product and the slots for it leave as many programs on a multiprocessor as there were."""
    held = {copy.alloc[0] for copy in copies if copy.alloc}
    inside = 0
    for position, op in enumerate(loop.ops):
        if loop.names[position] == "tilegpu.local_alloc" and position not in held:
            inside += buffer_bytes(op.results[0].type)
        elif loop.names[position] in ("tile.descriptor_store", "tile.descriptor_reduce"):
            inside += buffer_bytes(described_buffer(op.operands[0]))
    other = _bytes_outside(loop.op) + inside
    threads = threads_of(loop.op)
    before, after = (
        min(early.programs(threads, is_early), shared_limit // (other + n * per_slot))
        for n, is_early in ((slots, False), (max(slots, _EARLY_SLOTS), True))
    )
    return 0 < after >= before


def _with_bulk(loop: Loop, plan: Plan) -> tuple[Loop, Plan]:
    """Rewrite the loads of a plan that are bulk copies; return what is then to be expanded."""
    new = {copy.position: make_bulk(loop, copy.load) for copy in plan.copies if copy.bulk}
    again = Loop(loop.op)
    for copy in plan.copies:
        copy.load = new.get(copy.position, copy.load)
        copy.position, copy.alloc = again.position(copy.load), [again.position(loop.ops[p]) for p in copy.alloc]
    return again, plan


def _distance(loop: Loop, copies: list[Copy], slots: int) -> int:
    """Return how many iterations ahead the schedule has the copies."""
    asked = {given(c.load, AHEAD) for c in copies} - {None} or {slots - 1}
    distance = asked.pop()
    possible = range(slots - 1, max(1, slots - 2) - 1, -1)
    if asked or distance not in possible:
        numbers = " or ".join(map(str, possible)) or "no"
        raise user_error(loop.op, f"loads of a loop with {slots} slots run {numbers} iterations ahead, all alike")
    return distance


def _copies(loop: Loop) -> list[Copy]:
    """Return the loads of a loop that can and should run ahead."""
    forced = "tile.num_stages" in loop.op.attributes or _streams(loop)
    late = _behind_dots(loop)
    out = []
    for position, op in enumerate(loop.ops):
        if loop.names[position] not in _LOADS or not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        asked = given(op, AHEAD)
        wanted = bool(asked) if asked is not None else _is_wanted(loop, position, forced, late)
        if not wanted or not _has_copy_form(op):
            continue
        if loop.slice_of(op.operands, through_loads=True) is None or not loop.may_reorder(op):
            continue
        out.append(_placed(loop, position))
    indices = {load for copy in out for load in copy.addresses(loop).loads}
    return [copy for copy in out if copy.position not in indices]


def _streams(loop: Loop) -> bool:
    """Whether a loop is about memory, and its loads may run ahead. Two arguments may be the same memory, but what programs write is of no
    concern to others. A loop whose threads meet (histograms) waits for that rather than for memory."""
    names = {op.name for op in walk(loop.op)}
    if not _DOTS.isdisjoint(names):
        return False
    return PROGRAMS in loop.op.attributes or names.isdisjoint(GLOBAL_WRITES | MEETINGS)


def _bulk_copies(loop: Loop) -> list[Copy]:
    """Return the vectors of a loop that TMA can copy beside its blocks."""
    late = _behind_dots(loop)
    out = []
    for position, op in enumerate(loop.ops):
        if loop.names[position] == "tile.load" and given(op, AHEAD) != 0 and _is_bulk_vector(loop, position, late):
            if loop.slice_of(op.operands) is not None and loop.may_reorder(op):
                out.append(Copy(op, position, run_layout(op.results[0].type), [], bulk=True))
    return out


def _is_bulk_vector(loop: Loop, position: int, late: set[int]) -> bool:
    """Whether a load is of a vector that TMA can copy, and that is first needed behind a wgmma."""
    load = loop.ops[position]
    if load.name != "tile.load" or RUN not in load.attributes or not _is_late_vector(loop, position, late):
        return False
    first = min((loop.position(use.owner.operation) for use in load.results[0].uses), default=0)
    return "tilegpu.wgmma" in loop.names[:first] and can_be_bulk(loop, load)


def _is_wanted(loop: Loop, load: int, forced: bool, late: set[int]) -> bool:
    return (forced or _reaches_dot(loop, load)) and not _is_late_vector(loop, load, late)


def _behind_dots(loop: Loop) -> set[int]:
    """Return the positions of what depends on a dot of the same iteration."""
    late: set[int] = set()
    pending = [p for p, name in enumerate(loop.names) if name in _DOTS]
    while pending:
        for result in loop.ops[pending.pop()].results:
            users = {loop.position(use.owner.operation) for use in result.uses} - late - {None}
            late |= users
            pending += users
    return late


def _is_late_vector(loop: Loop, load: int, late: set[int]) -> bool:
    """Whether every thread loads for itself what it combines with results of dots: it arrives while they are computed, and needs no
    barrier as a copy in shared memory does."""
    if not is_replicated(layout_of(loop.ops[load].results[0].type)):
        return False
    pending = [load]
    while pending:
        position = pending.pop()
        if position not in late:
            users = [loop.position(use.owner.operation) for result in loop.ops[position].results for use in result.uses]
            if not users or None in users or loop.names[position] in _DOTS:
                return False
            pending += users
    return True


def _reaches_dot(loop: Loop, load: int) -> bool:
    pending, seen = [load], set()
    while pending:
        position = pending.pop()
        if position in seen:
            continue
        seen.add(position)
        if loop.names[position] in _DOTS:
            return True
        for result in loop.ops[position].results:
            for use in result.uses:
                user = loop.position(use.owner.operation)
                if user is not None and loop.names[user] != "scf.yield" and loop.names[user] not in _LOADS:
                    pending.append(user)
    return False


def _has_copy_form(load: ir.Operation) -> bool:
    """Whether TMA or cp.async can do what a load does; the latter 4 bytes or more at a time, zero where the mask is false."""
    if load.name == "tile.descriptor_load":
        return True
    if "is_volatile" in load.attributes or not _width_bytes(load) >= _MIN_COPY_BYTES:
        return False
    return len(load.operands) < 3 or is_zero(load.operands[2])


def _width_bytes(load: ir.Operation) -> int:
    width = ir.IntegerAttr(load.attributes["tilegpu.vector"]).value if "tilegpu.vector" in load.attributes else 1
    return width * element_bytes(load.results[0].type.element_type)


def _placed(loop: Loop, position: int) -> Copy:
    """Choose the buffer: for TMA, that of the descriptor; else that of the dot's operand if the copy can write it in pieces of 4 bytes, or
    a plain one for the same threads."""
    load = loop.ops[position]
    type_ = load.results[0].type
    layout, bits = layout_of(type_), 8 * element_bytes(type_.element_type)
    described = shared_of(described_buffer(load.operands[0])) if load.name == "tile.descriptor_load" else None
    for use in load.results[0].uses:
        user = use.owner.operation
        if user.name == "tilegpu.local_alloc":
            shared = shared_of(user.results[0].type)
            fits = shared == described if described else shared_vector_width(layout, shared, bits) * bits >= 8 * _MIN_COPY_BYTES
            if fits:
                place = loop.position(user)
                fenced = loop.names[place + 1] == "tilegpu.fence_async"
                return Copy(load, position, shared, [place, place + 1] if fenced else [place])
    return Copy(load, position, described or identity(tuple(type_.shape), dim_order(layout)), [])


def _bytes_outside(op: ir.Operation) -> int:
    """Return the shared memory of the buffers that are allocated before a loop and may live through it."""
    total = 0
    block = op.block
    while block is not None:
        for other in block.operations:
            other = other.operation
            if other.name == "tilegpu.local_alloc":
                shape, element, _, slots = tilegpu.buffer_info(other.results[0].type)
                total += prod(shape) * element_bytes(element) * max(1, slots)
        parent = block.owner.operation
        block = parent.block if parent.name != "func.func" else None
    return total
