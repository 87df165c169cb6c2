"""Which loops of a kernel can have their copies made by warps of their own, and whether that pays, for `tilegpu-warp-specialize`.

A *site* is an innermost loop whose wgmmas read blocks that tensor descriptors load in it. Blocks that are loaded outside and that only
wgmmas of sites read (the queries of attention) are *held*: the producer loads them too. It runs the slice of the kernel that computes where
all these blocks lie, so that must be scalars, and nothing in the kernel may write what it loads, nor, in front of the loads, wait for
others that may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

from mlir import ir

from tilewright.compiler.encoding import layout_of, shared_of
from tilewright.compiler.layouts import SharedLayout, element_count
from tilewright.compiler.layouts.descriptors import MAX_BOX, tma_boxes
from tilewright.compiler.lowering.scratch import scratch_bytes
from tilewright.compiler.lowering.shared_memory import buffer_bytes
from tilewright.dialects import tile, tilegpu

from .axis_info import element_bytes
from .loop_slice import GLOBAL_WRITES, ORDERING, Loop, base_argument, is_cheap
from .order import Order, loops_around
from .producer_slice import Slice, Slicer
from .schedule import ROLES, SLOTS, STAGGER, TURNS, given
from .staging import stagings
from .tree import key
from .wgmma_loops import Delayed, carries_accumulators, delayed_wgmmas, issues, registers

_WGMMA, _WAIT, _LOAD = "tilegpu.wgmma", "tilegpu.wgmma_wait", "tile.descriptor_load"
#: Attribute (i32) of a load of a block: the bits of the rank whose CTAs load the same block.
MULTICAST = "tile.multicast"
#: Warps of the producer: setmaxnreg is for whole warpgroups.
PRODUCER_WARPS = 4
#: Consumer warps -> registers of (a consumer thread, a producer thread). At launch every thread has its share of the 65,536 registers in
#: steps of 8, and the sum must not grow: 3 x 168 >= 2 x 240 + 24. One consumer warpgroup has as many as a thread can have anyway (0).
REGISTERS = {4: (0, 0), 8: (240, 24), 16: (112, 24)}
#: Consumer warps -> 32-bit registers of a thread that accumulators and a delayed wgmma's left operand may take.
_MAX_OPERAND_REGISTERS = {4: 176, 8: 176, 16: 88}
_WARPS_PER_GROUP, _THREADS_PER_GROUP = 4, 128
_EXPONENTIALS = frozenset({"math.exp", "math.exp2"})
#: Cycles in which a multiprocessor does an exponential for each thread of a warpgroup, and the part of the products' time below which two
#: warpgroups take turns. Attention on an H200, in turns and freely: heads of 256 (1/4) 778 and 748 TFLOP/s, heads of 128 (1/2) 732 and
#: 741; four groups, heads of 64: 498 and 461.
_EXP_CYCLES, _FEW_EXPONENTIALS = 8, 3 / 8
#: Without a word from the user: bytes that an iteration must copy, and 32-bit registers of a thread that its products must fill, for the
#: handing over to be small beside them. With fewer registers, several CTAs on a multiprocessor serve as well.
MIN_BYTES = 16 * 1024
MIN_REGISTERS = 64
_SLOT_ALIGNMENT, _MBARRIERS = 1024, 16
#: Roles that leave no registers for a second CTA have the shared memory of the multiprocessor to themselves: rings for accumulations get
#: more slots than the `num_stages` asked for, up to these bytes.
_FULL_RING_BYTES = 193 * 1024
_EXCLUSIVE_REGISTERS = 128


@dataclass
class Block:
    """A load of a site: positions of it, of the allocation that wgmmas read, of that one's fence, and of the first operation that uses it;
    the layout of a slot, its element and its bytes. `multicast`: the bits of the rank whose CTAs load the same block, each a piece of it
    for all of them."""

    load: int
    alloc: int
    fence: int | None
    first: int
    shared: SharedLayout
    element: ir.Type
    slot_bytes: int
    multicast: int = 0


@dataclass
class Group:
    """Blocks that arrive and are released together: the same wgmmas read them. `first` and `last` are the positions of the first operation
    that uses one, and of the last of these wgmmas."""

    blocks: list[Block]
    first: int
    last: int
    delayed: Delayed | None = None

    @property
    def ctas(self) -> int:
        """The bits of the rank whose CTAs must have released a slot before it is filled."""
        return reduce(or_, (block.multicast for block in self.blocks))


@dataclass
class Site:
    """One loop. `unused`: positions of operations without effect that hold on to the loads. `delayed`: wgmmas that run an iteration late;
    then those in front of the first wait run an iteration early, with the operations that they need (`ahead`). `in_flight`: its
    accumulators stay pending from one iteration to the next, so a slot is released an iteration late. `turns`: how many warpgroups take
    turns with their products, 0 where all issue them at any time."""

    loop: Loop
    groups: list[Group]
    unused: list[int]
    delayed: list[Delayed]
    ahead: set[int]
    in_flight: bool
    turns: int

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot of every ring, with what alignment may cost."""
        return sum(_aligned(b.slot_bytes) for g in self.groups for b in g.blocks)

    @property
    def early(self) -> list[Group]:
        """The groups that are used in the iteration that loads them."""
        return [g for g in self.groups if g.delayed is None]

    def number(self, group: Group) -> int:
        """Return the position of a group in `groups`."""
        return next(i for i, other in enumerate(self.groups) if other is group)

    def rings(self) -> tuple:
        """What its rings are: sites of equal rings share them."""
        return tuple(tuple((b.shared, b.element, b.multicast) for b in g.blocks) for g in self.groups)


@dataclass
class Held:
    """A block that is loaded outside of the sites that read it: the load, the allocation, that one's fence, and the operation next to them
    behind which no site reads it any more. `in_loop`: it is loaded again and again, into `slots` slots in turn."""

    load: ir.Operation
    alloc: ir.Operation
    fence: ir.Operation | None
    last: ir.Operation
    slot_bytes: int
    in_loop: bool
    slots: int = 1

    @property
    def bytes(self) -> int:
        """Bytes of a slot, with its mbarriers."""
        return _aligned(self.slot_bytes) + _MBARRIERS


@dataclass
class Specialization:
    """The decision for a kernel. `slots` is the length of every site's ring."""

    sites: list[Site]
    held: list[Held]
    slice: Slice
    slots: int


def specialization(function: ir.Operation, num_warps: int, num_stages: int, shared_limit: int, automatic: bool) -> Specialization | None:
    """Return how to specialize the warps of a kernel, or None where that is not possible or does not pay. `automatic`: it may be chosen
    for loops that do not ask for it with `tile.warp_specialize`."""
    if num_warps not in REGISTERS:
        return None
    ops = list(_walk(function))
    if any(op.name in ORDERING or op.name.startswith("tilegpu.cluster_") for op in ops):
        return None
    loops = [op for op in ops if op.name == "scf.for" and not any(o.name in ("scf.for", "scf.while", "scf.if") for o in _walk(op))]
    sites = []
    for op in loops:
        request = _request(op)
        site = _site(op, num_warps) if (automatic if request is None else request) else None
        if site is not None and (request or _pays(site)):
            sites.append(site)
    if not sites:
        return None
    loads = [site.loop.ops[b.load] for site in sites for g in site.groups for b in g.blocks]
    order = Order(ops)
    if not _may_run_ahead(loads, ops, order):
        return None
    held = [h for h in _held_blocks(ops, sites) if _may_run_ahead([*loads, h.load], ops, order)]
    around = [site.loop.op for site in sites]
    needed = Slicer(ops).run(around, [*loads, *(h.load for h in held)])
    if needed is None and held:
        held = []
        needed = Slicer(ops).run(around, loads)
    if needed is None:
        return None
    asked, per_slot = _asked(sites, num_stages, _is_exclusive(sites, num_warps)), _bytes_per_slot(sites)
    scratch = max((scratch_bytes(op) for op in ops if op.name.startswith("tile")), default=0)
    spans, total = _spans(ops), shared_limit - scratch - _SLOT_ALIGNMENT
    room, alone = (_room(sites, blocks, spans, total) // per_slot for blocks in (held, []))
    if min(asked, room) < min(asked, alone):  # The consumers' own buffers share memory with each other.
        held, room = [], alone
    slots = min(asked, room) if _scheduled(sites) is None else asked
    if slots < 2:
        return None
    left = _room(sites, held, spans, total) - slots * per_slot
    for block in held:
        if block.in_loop and block.bytes <= left:
            left -= block.bytes
            block.slots = 2
    return Specialization(sites, held, needed, slots)


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                inner = inner.operation
                yield inner
                yield from _walk(inner)


# The decision


def _request(op: ir.Operation) -> bool | None:
    """What the schedule says of a loop, else the user of it or of one around it: `tile.warp_specialize`."""
    scheduled = given(op, ROLES)
    if scheduled is not None:
        return bool(scheduled)
    while op.name != "func.func":
        if "tile.warp_specialize" in op.attributes:
            return ir.BoolAttr(op.attributes["tile.warp_specialize"]).value
        op = op.parent.operation
    return None


def _pays(site: Site) -> bool:
    """Whether an iteration is worth the handing over, and all that it copies is copied by the producer."""
    loads = [p for p, name in enumerate(site.loop.names) if name == _LOAD or (name == "tile.load" and _is_tensor(site.loop.ops[p]))]
    if len(loads) != sum(len(g.blocks) for g in site.groups):
        return False
    return site.slot_bytes >= MIN_BYTES and _product_registers(site) >= MIN_REGISTERS


def _product_registers(site: Site) -> int:
    """Return the 32-bit registers of a thread that the results of a site's wgmmas take."""
    types = [site.loop.ops[p].results[0].type for p in issues(site.loop)]
    return sum(element_count(layout_of(t)) * t.element_type.width // 32 for t in types)


def _is_exclusive(sites: list[Site], num_warps: int) -> bool:
    """Whether a CTA takes so many registers that a second one has no room beside it."""
    return num_warps > PRODUCER_WARPS or max(map(_product_registers, sites)) >= _EXCLUSIVE_REGISTERS


def _is_tensor(op: ir.Operation) -> bool:
    return isinstance(op.results[0].type, ir.RankedTensorType)


def _asked(sites: list[Site], num_stages: int, exclusive: bool) -> int:
    """Return how many slots the rings are to have: as the schedule says, or the user, or as many as make sense."""
    scheduled = _scheduled(sites)
    if scheduled is not None:
        return scheduled
    requests = [ir.IntegerAttr(s.loop.op.attributes["tile.num_stages"]).value for s in sites if "tile.num_stages" in s.loop.op.attributes]
    asked = max(requests, default=num_stages)
    if exclusive and all(site.in_flight for site in sites):
        asked = max(asked, _FULL_RING_BYTES // _bytes_per_slot(sites))
    return asked


def _scheduled(sites: list[Site]) -> int | None:
    """Return how many slots the schedule says."""
    return max((n for site in sites if (n := given(site.loop.op, SLOTS)) is not None), default=None)


def _bytes_per_slot(sites: list[Site]) -> int:
    rings = {site.rings(): site for site in sites}
    return sum(site.slot_bytes + _MBARRIERS * len(site.groups) for site in rings.values())


@dataclass
class _Span:
    """Bytes of shared memory that are taken between two positions among a kernel's operations; `alloc` is the buffer's allocation."""

    start: int
    end: int
    bytes: int
    alloc: int | None


def _room(sites: list[Site], held: list[Held], spans: list[_Span], total: int) -> int:
    """Return the bytes of `total` that are left for the sites' rings beside all else that the kernel may hold in shared memory."""
    staged = {key(site.loop.ops[b.alloc]) for site in sites for g in site.groups for b in g.blocks} | {key(h.alloc) for h in held}
    others = [span for span in spans if span.alloc not in staged]
    most = max((sum(o.bytes for o in others if o.start <= span.start <= o.end) for span in others), default=0)
    return total - most - sum(h.bytes for h in held)


def _spans(ops: list[ir.Operation]) -> list[_Span]:
    """Return what buffers, and the staging of stores, take at least: what is read in loops only is free again behind them (see
    `tilegpu-allocate-shared`)."""
    last = {key(op): i + sum(1 for _ in _walk(op)) for i, op in enumerate(ops) if op.name in ("scf.for", "scf.while")}

    def end_of_loop(op: ir.Operation) -> int | None:
        """The position of the end of the outermost loop that holds an operation."""
        found = None
        while op.name != "func.func":
            found = last.get(key(op), found)
            op = op.parent.operation
        return found

    spans: list[_Span] = []
    for i, op in enumerate(ops):
        if op.name == "tilegpu.local_alloc":
            ends = [end_of_loop(user) for user in _users(op.results[0])]
            known = None not in ends and end_of_loop(op) is None
            end = max(ends, default=i) if known else len(ops)
            spans.append(_Span(i if known else 0, end, buffer_bytes(op.results[0].type), key(op)))
        elif op.name in ("tile.descriptor_store", "tile.descriptor_reduce"):
            in_loop = end_of_loop(op) is not None
            spans.append(_Span(0 if in_loop else i, len(ops) if in_loop else i, _least_staging(op), None))
    return spans


def _users(buffer: ir.Value) -> list[ir.Operation]:
    """Return what uses a buffer, directly or through views."""
    users = [use.owner.operation for use in buffer.uses]
    return [u for user in users for u in (_users(user.results[0]) if user.name == "tilegpu.view" else [user])]


def _least_staging(store: ir.Operation) -> int:
    """Return the bytes of the smallest staging buffer of a store; what is read back is staged whole."""
    descriptor, value = list(store.operands)[:2]
    function = descriptor.owner.owner.operation
    recipe = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[descriptor.arg_number])["tile.descriptor"]
    plans = stagings(value.type, 8 * element_bytes(tile.desc_info(descriptor.type)[1]))
    return plans[0 if "reads_back" in recipe else -1].bytes


def _aligned(size: int) -> int:
    return -(-size // _SLOT_ALIGNMENT) * _SLOT_ALIGNMENT


def _may_run_ahead(loads: list[ir.Operation], ops: list[ir.Operation], order: Order) -> bool:
    return _never_written(loads, ops) and not any(order.is_behind(load) for load in loads)


def _never_written(loads: list[ir.Operation], ops: list[ir.Operation]) -> bool:
    """Whether nothing writes memory based on an argument that is loaded ahead."""
    loaded = {base_argument(load.operands[0]) for load in loads}
    written = {base_argument(op.operands[0]) for op in ops if op.name in GLOBAL_WRITES}
    return not _is_any_unknown(loaded | written) and not loaded & written


def _is_any_unknown(bases: set[ir.Value | None]) -> bool:
    return any(base is None for base in bases)


# Sites


def _site(op: ir.Operation, num_warps: int) -> Site | None:
    """Read a loop as a site, if it is one."""
    if "unsignedCmp" in op.attributes or not _inside_structured(op):
        return None
    loop = Loop(op)
    blocks: dict[tuple[int, int], list[Block]] = {}
    unused: list[int] = []
    for position, name in enumerate(loop.names):
        if name != _LOAD:
            continue
        found = _block(loop, position, unused)
        if found is None:
            return None
        block, readers = found
        blocks.setdefault(readers, []).append(block)
    if not blocks:
        return None
    delayed = delayed_wgmmas(loop, {b.alloc for group in blocks.values() for b in group}, _MAX_OPERAND_REGISTERS[num_warps])
    ahead = _ahead(loop) if delayed else None
    delayed = delayed if ahead else []
    groups = []
    for (_, last), members in sorted(blocks.items(), key=lambda item: item[0]):
        late = next((d for d in delayed if d.issue == last), None)
        if late is not None and [b.alloc for b in members] != [late.alloc]:
            return None
        groups.append(Group(members, min(b.first for b in members), last, late))
    if any(_wait_of(loop, group.last) is None for group in groups):
        return None
    return Site(
        loop,
        groups,
        unused,
        delayed,
        ahead if delayed else set(),
        not delayed and carries_accumulators(loop),
        _turns(loop, num_warps) if delayed else 0,
    )


def _inside_structured(op: ir.Operation) -> bool:
    parent = op.parent.operation
    while parent.name in ("scf.for", "scf.if"):
        parent = parent.parent.operation
    return parent.name == "func.func"


def _block(loop: Loop, position: int, unused: list[int]) -> tuple[Block, tuple[int, int]] | None:
    """Return a load as a block, with the positions of the first and the last wgmma that reads it; None unless only wgmmas read it, from a
    buffer as TMA writes it."""
    load = loop.ops[position]
    element = tile.desc_info(load.operands[0].type)[1]
    alloc = None
    for use in load.results[0].uses:
        user = use.owner.operation
        if alloc is None and _is_buffer_of(load, user):
            alloc = loop.definition(user.results[0])
        elif is_cheap(user.name) and not any(True for r in user.results for _ in r.uses) and loop.definition(user.results[0]) is not None:
            unused.append(loop.definition(user.results[0]))
        else:
            return None
    if alloc is None:
        return None
    users, readers = _readers(loop, loop.ops[alloc].results[0])
    if not readers or None in users:
        return None
    fence = alloc + 1 if loop.names[alloc + 1] == "tilegpu.fence_async" else None
    shared = shared_of(loop.ops[alloc].results[0].type)
    size = shared.allocation_elements() * element_bytes(element)
    block = Block(position, alloc, fence, min(users), shared, element, size, multicast_of(load, shared))
    return block, (min(readers), max(readers))


def _is_buffer_of(load: ir.Operation, op: ir.Operation) -> bool:
    """Whether an operation puts a loaded block into a buffer as TMA writes it."""
    shape, element, layout = tile.desc_info(load.operands[0].type)
    return op.name == "tilegpu.local_alloc" and op.results[0].type == tilegpu.buffer_type(shape, element, layout)


def _held_blocks(ops: list[ir.Operation], sites: list[Site]) -> list[Held]:
    """Return the loads outside of sites whose blocks only wgmmas of sites read."""
    bodies = {key(site.loop.op) for site in sites}
    out = []
    for op in ops:
        if op.name != _LOAD or key(op.parent.operation) in bodies or not _inside_structured(op):
            continue
        users = [use.owner.operation for use in op.results[0].uses]
        if len(users) != 1 or not _is_buffer_of(op, users[0]) or users[0].block != op.block:
            continue
        (alloc,) = users
        readers = _users(alloc.results[0])
        if not readers or any(r.name != _WGMMA or key(r.parent.operation) not in bodies for r in readers):
            continue
        block = [o.operation for o in op.block.operations]
        at = {key(o): i for i, o in enumerate(block)}
        last = max(_position_among(at, r) for r in readers)
        following = block[at[key(alloc)] + 1]
        fence = following if following.name == "tilegpu.fence_async" else None
        size = buffer_bytes(alloc.results[0].type)
        out.append(Held(op, alloc, fence, block[last], size, bool(loops_around(op))))
    return out


def _position_among(positions: dict[int, int], op: ir.Operation) -> int:
    """Return the position of the operation, of those that are given, which holds another one."""
    while key(op) not in positions:
        op = op.parent.operation
    return positions[key(op)]


def multicast_of(load: ir.Operation, shared: SharedLayout) -> int:
    """Return the bits of the rank whose CTAs could share the copies of a load (`tile.multicast`): its descriptor is an argument that is
    used for such loads alone, and the block has pieces that TMA can copy."""
    descriptor = load.operands[0]
    if MULTICAST not in load.attributes or not isinstance(descriptor.owner, ir.Block):
        return 0
    mask = ir.IntegerAttr(load.attributes[MULTICAST]).value
    users = [use.owner.operation for use in descriptor.uses]
    alike = all(u.name == _LOAD and MULTICAST in u.attributes and ir.IntegerAttr(u.attributes[MULTICAST]).value == mask for u in users)
    bits, rows = max(8, tile.desc_info(descriptor.type)[1].width), shared.shape[0] >> mask.bit_count()
    return mask if alike and rows and tma_boxes(shared, bits, min(rows, MAX_BOX)) is not None else 0


def _readers(loop: Loop, buffer: ir.Value) -> tuple[list[int | None], list[int]]:
    """Return the positions of what uses a buffer, directly or through views (None: not in the body, or no wgmma), and of the wgmmas."""
    users: list[int | None] = []
    readers: list[int] = []
    for use in buffer.uses:
        user = use.owner.operation
        position = loop.definition(user.results[0]) if len(user.results) else None
        if user.name == "tilegpu.view" and position is not None:
            inner, found = _readers(loop, user.results[0])
            users += [position, *inner]
            readers += found
        elif user.name == _WGMMA and position is not None:
            users.append(position)
            readers.append(position)
        else:
            users.append(None)
    return users, readers


def _turns(loop: Loop, num_warps: int) -> int:
    """Return how many warpgroups take turns at the tensor cores, 0 where each issues its products at any time. In turns one group works on
    its results while another's products run. Two groups find that order by themselves if exponentials take long enough."""
    groups = num_warps // _WARPS_PER_GROUP
    scheduled = given(loop.op, TURNS)
    if scheduled is not None:
        return scheduled
    if groups > 2:
        return groups
    exponentials = sum(_EXP_CYCLES * registers(o.results[0].type) for o in loop.ops if o.name in _EXPONENTIALS and _is_tensor(o))
    products = sum(_product_cycles(loop.ops[p]) for p in issues(loop))
    return groups if groups == 2 and exponentials < _FEW_EXPONENTIALS * products else 0


def staggered(site: Site, slots: int, num_warps: int) -> int:
    """Return how many of the last iterations of a site, whose accumulators stay in flight, warpgroups do one after the other
    (`tilegpu-stagger-ends`), given the slots of its ring: as many as may be full while the one before them is still read."""
    scheduled = given(site.loop.op, STAGGER)
    if scheduled is not None:
        return scheduled
    return slots - 1 if num_warps > _WARPS_PER_GROUP else 0


def _product_cycles(wgmma: ir.Operation) -> float:
    """The cycles of a multiprocessor's tensor cores for one warpgroup's part of a wgmma: 1,024 products of 32 bits each, and more of
    smaller ones."""
    shape, element, *_ = tilegpu.buffer_info(wgmma.operands[1].type)
    return registers(wgmma.results[0].type) * _THREADS_PER_GROUP * shape[0] * element.width / (32 * 1024)


def _ahead(loop: Loop) -> set[int] | None:
    """Return the positions of the wgmmas in front of the first wait and of what they depend on, if the iteration before can do that: it
    depends on neither the induction variable nor carried values, but for the blocks."""
    first = next(p for p, name in enumerate(loop.names) if name == _WAIT)
    out: set[int] = set()
    pending = [v for p in issues(loop) if p < first for v in (loop.ops[p].results[0],)]
    while pending:
        value = pending.pop()
        if value == loop.iv or loop.carried_index(value) is not None:
            return None
        position = loop.definition(value)
        if position is None or position in out:
            continue
        name = loop.names[position]
        if not (is_cheap(name) or name in (_WGMMA, "tilegpu.view", "tilegpu.local_alloc")):
            return None
        out.add(position)
        if name != "tilegpu.local_alloc":
            pending += loop.ops[position].operands
    return out


def _wait_of(loop: Loop, wgmma: int) -> int | None:
    """Return the position of the wait for a wgmma."""
    uses = [use.owner.operation for use in loop.ops[wgmma].results[0].uses]
    return loop.position(uses[0]) if len(uses) == 1 and uses[0].name == _WAIT else None


def wait_behind(site: Site, group: Group) -> int:
    """Return the position of the wait behind which nothing reads the blocks of a group any more."""
    wait = _wait_of(site.loop, group.last)
    assert wait is not None
    return wait


def first_wait(site: Site) -> int:
    """Return the position of the first wait for wgmmas in the body of a site."""
    return min(w for p in issues(site.loop) if (w := _wait_of(site.loop, p)) is not None)
