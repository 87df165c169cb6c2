"""Rewrites one loop by a `Plan`: copies ahead, slots in turn, delayed wgmmas. The decisions are `tilegpu-pipeline`'s."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.analysis.loop_slice import Loop, Slice
from tilewright.compiler.analysis.wgmma_loops import Delayed
from tilewright.compiler.encoding import buffer_type, layout_of
from tilewright.compiler.layouts import SharedLayout
from tilewright.dialects import tilegpu

from . import delayed_wgmma
from .building import Builder, Values, i32_attr, tensor_type, zeros
from .lower_tma import block_bytes, issue_load, mbarrier_type
from .rings import EQ, SGT, compare

#: Attribute of accesses to memory that only the thread's own warp accesses like this.
EACH_WARP = "tilegpu.each_warp"


@dataclass
class Copy:
    """A load that becomes a copy. `shared` is the layout of a slot; `position` that of the load in the loop, `alloc` those of the
    allocation that holds the loaded value for a dot, and of its fence (empty if the value is read back into registers); `delay` the
    iterations by which its use is delayed. `bulk`: TMA copies it as it lies in memory (`bulk_vectors`)."""

    load: ir.Operation
    position: int
    shared: SharedLayout
    alloc: list[int]
    delay: int = 0
    bulk: bool = False
    buffer: ir.Value | None = None

    @property
    def by_tma(self) -> bool:
        """Whether TMA does the copy, not cp.async."""
        return self.bulk or self.load.name == "tile.descriptor_load"

    def addresses(self, loop: Loop) -> Slice:
        """The computation of where it copies from."""
        return loop.slice_of(self.load.operands, through_loads=True) or Slice()

    @property
    def by_each_warp(self) -> bool:
        """Whether each warp copies what it reads back into registers itself, and nothing else."""
        return not self.by_tma and not self.alloc and not layout_of(self.load.results[0].type).free_masks().get("warp", 0)

    @property
    def element(self) -> ir.Type:
        return self.load.results[0].type.element_type

    @property
    def slot_bytes(self) -> int:
        return self.shared.allocation_elements() * element_bytes(self.element)


@dataclass
class Plan:
    """What to do with a loop. `lag`: iterations for which a slot may still be read after the one that consumed it; `behind_wait`: copies
    stand behind the first wait for wgmmas, since the iteration before still reads the slot that they write. `early`: the position of a
    product that is to be issued an iteration early, by `tilegpu-early-products`; its blocks are loaded two iterations ahead or more."""

    copies: list[Copy]
    delayed: list[Delayed]
    slots: int
    lag: int
    behind_wait: bool
    early: int | None = None


class Track:
    """Computations of a loop's body that are repeated for an iteration further on, and the carried values of that iteration."""

    def __init__(self, loop: Loop, needed: Slice):
        self.loop = loop
        self.ops = [loop.ops[p] for p in sorted(needed.ops)]
        self.carried = sorted(needed.carried)
        self.current = [loop.inits[i] for i in self.carried]

    def step(self, build: Builder, iv: ir.Value, values: Values) -> Values:
        """Compute for the iteration of `iv`, given `values`, and move on to the next one; return all values of it."""
        values = {**values, self.loop.iv: iv}
        values |= {self.loop.args[i]: v for i, v in zip(self.carried, self.current, strict=True)}
        for op in self.ops:
            build.clone(op, values)
        self.current = [values.get(self.loop.yields[i], self.loop.yields[i]) for i in self.carried]
        return values


def masked_load(build: Builder, load: ir.Operation, values: Values, more: ir.Value) -> ir.Value:
    """A copy of a load with its operands replaced by `values`, masked off entirely where the i1 `more` is false."""
    pointer, *rest = (values.get(v, v) for v in load.operands)
    mask = build.splat(more, pointer.type)
    if rest:
        mask = build.binary("arith.andi", rest[0], mask)
    attributes = {name: load.attributes[name] for name in load.attributes}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, len(rest[1:])], more.context)
    return build.value("tile.load", load.results[0].type, [pointer, mask, *rest[1:]], attributes)


class _Ahead:
    """The copies with one delay, and their address computations at the iteration that they have got to. Loads that these start from are an
    iteration further: `fetched` are their values for the next copies."""

    def __init__(self, loop: Loop, copies: list[Copy]):
        self.copies = copies
        self.by_tma = [c for c in copies if c.by_tma]
        self.by_threads = [c for c in copies if not c.by_tma]
        self.mbarriers: ir.Value | None = None
        needed = loop.slice_of([v for c in copies for v in c.load.operands], through_loads=True) or Slice()
        self.addresses = Track(loop, needed)
        self.loads = [loop.ops[p] for p in sorted(needed.loads)]
        self.indices = Track(loop, loop.slice_of([v for load in self.loads for v in load.operands]) or Slice())
        self.fetched: list[ir.Value] = []

    @property
    def state(self) -> list[ir.Value]:
        """What the loop carries for it."""
        return [*self.addresses.current, *self.indices.current, *self.fetched]

    def resume(self, state: list[ir.Value]) -> None:
        """Go on from a state."""
        addresses, indices = len(self.addresses.carried), len(self.indices.carried)
        self.addresses.current = state[:addresses]
        self.indices.current = state[addresses : addresses + indices]
        self.fetched = state[addresses + indices :]


class Expansion:
    """One loop's rewriting: live operations move to a new loop beside the old one."""

    def __init__(self, loop: Loop, plan: Plan):
        self.loop = loop
        self.plan = plan
        self.distance = plan.slots - 1 - plan.lag
        self.context = loop.op.context
        self.token = tilegpu.token_type()
        self.i1 = ir.IntegerType.get_signless(1, self.context)
        self.aheads = [_Ahead(loop, [c for c in plan.copies if c.delay == delay]) for delay in (0, 1)]
        self.uses_threads = any(ahead.by_threads for ahead in self.aheads)
        self.tma_delays = [delay for delay, ahead in enumerate(self.aheads) if ahead.by_tma]
        self.results: list[ir.Value] = []
        self.slot_is_free = False
        # Slot indices are carried for the iterations 0, 1, …, `oldest` before this one: copies write the oldest.
        self.oldest = max(1 + plan.lag + c.delay for c in plan.copies)

    def run(self) -> None:
        """Do it; the old loop is gone afterwards."""
        loop, plan = self.loop, self.plan
        before = Builder.before(loop.op)
        for copy in plan.copies:
            copy.buffer = before.value("tilegpu.local_alloc", buffer_type(copy.shared, copy.element, plan.slots), [])
        self._clear_first_slots(before)
        self._make_mbarriers(before)
        self._prologue(before)
        self.reach = [before.binary("arith.muli", loop.step, before.integer(loop.step.type, self.distance - d)) for d in (0, 1)]
        gone = {p for c in plan.copies for p in (c.position, *c.alloc)}
        live, kept = loop.live(gone)
        live -= {p for d in plan.delayed for p in (d.issue, d.wait, *d.views)}
        late = {d.carried for d in plan.delayed}
        kept = sorted(kept - late)
        operands = [v for d in plan.delayed for v in delayed_wgmma.initial_operands(before, loop, d)]
        ahead = [v for a in self.aheads for v in a.state]
        slots = [before.i32((plan.slots - shift) % plan.slots) for shift in range(self.oldest + 1)]
        # The parity of the phase that the mbarrier of a slot is in; the phase before the first one is over.
        parities = [before.i32(delay) for delay in range(max(self.tma_delays, default=-1) + 1)]
        inits = [*(loop.inits[i] for i in kept), *operands, *ahead, *slots, *parities]
        types = [v.type for v in inits]
        new, block, arguments = self.make_loop(before, types, inits)
        self._fill(block, arguments, sorted(live), kept)
        self._finish(new, kept)
        loop.op.erase()

    def make_loop(self, build: Builder, types: list[ir.Type], inits: list[ir.Value]) -> tuple[ir.Operation, ir.Block, list[ir.Value]]:
        """Make the new loop, which carries `inits`: it, its body, still empty, and the induction variable and what is carried there."""
        loop = self.loop
        attributes = {name: loop.op.attributes[name] for name in loop.op.attributes}
        new = build.op("scf.for", types, [loop.lower, loop.upper, loop.step, *inits], attributes, regions=1)
        block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[loop.op.location] * (len(types) + 1))
        return new, block, list(block.arguments)

    def iteration_ahead(self, build: Builder, iv: ir.Value, delay: int) -> tuple[ir.Value, ir.Value]:
        """The induction variable of the iteration that is copied for in that of `iv`, and whether there is such an iteration."""
        # upper - iv does not overflow inside the loop, iv + reach might.
        remaining = build.binary("arith.subi", self.loop.upper, iv)
        more = compare(build, SGT, remaining, self.reach[delay])
        return build.binary("arith.addi", iv, self.reach[delay]), more

    def behind(self, build: Builder, position: int) -> None:
        """Build what comes behind the operation of the body at a position."""

    def carried_on(self, build: Builder) -> list[ir.Value]:
        """Build what the loop carries for itself: its values for the next iteration."""
        return []

    # In front of the loop

    def _clear_first_slots(self, build: Builder) -> None:
        """The slot that a delayed wgmma reads in the first iteration holds zeros: what it adds must be zero, not zero times NaN."""
        for copy in self.plan.copies:
            if copy.delay:
                value = zeros(build, copy.load.results[0].type)
                build.op("tilegpu.local_store", [], [value, self._slot(build, copy, build.i32(self.plan.slots - 1))])
                build.op("tilegpu.fence_async", [], [])

    def _make_mbarriers(self, build: Builder) -> None:
        """One ring of mbarriers for the TMA copies of each delay."""
        if self.tma_delays:
            # What threads wrote to the memory of the slots is over before TMA writes them.
            build.op("tilegpu.fence_async", [], [])
        for delay in self.tma_delays:
            ring = build.value("tilegpu.local_alloc", mbarrier_type(self.context, self.plan.slots), [])
            build.op("tilegpu.mbarrier_init", [], [ring], {"count": i32_attr(1, self.context)})
            self.aheads[delay].mbarriers = ring

    def _prologue(self, build: Builder) -> None:
        loop = self.loop
        length = build.binary("arith.subi", loop.upper, loop.lower)
        ivs, offsets = [loop.lower], [build.integer(loop.iv.type, 0)]
        for _ in range(1, self.distance):
            ivs.append(build.binary("arith.addi", ivs[-1], loop.step))
            offsets.append(build.binary("arith.addi", offsets[-1], loop.step))
        for ahead in self.aheads:
            self._fetch(build, ahead, loop.lower, compare(build, SGT, length, offsets[0]))
        for group in range(self.distance):
            tokens = []
            for delay, ahead in enumerate(self.aheads):
                stage = group - delay
                if stage >= 0 and ahead.copies:
                    more = compare(build, SGT, length, offsets[stage])
                    tokens += self._issue(build, ahead, ivs[stage], more, build.i32(stage))
                    if ahead.loads:
                        after = build.binary("arith.addi", ivs[stage], loop.step)
                        passed = build.binary("arith.addi", offsets[stage], loop.step)
                        self._fetch(build, ahead, after, compare(build, SGT, length, passed))
            if self.uses_threads:
                build.op("tilegpu.async_commit", [self.token], tokens)

    # In the loop

    def _fill(self, block: ir.Block, arguments: list[ir.Value], live: list[int], kept: list[int]) -> None:
        """Move the live operations into the new body and add the wait, the slots, the delayed wgmmas and the copies."""
        loop, plan = self.loop, self.plan
        iv, *rest = arguments
        args = iter(rest)
        carried = [next(args) for _ in kept]
        operands = [(next(args), next(args)) for _ in plan.delayed]
        for ahead in self.aheads:
            ahead.resume([next(args) for _ in ahead.state])
        slots = [next(args) for _ in range(self.oldest + 1)]
        parities = list(args)
        build = Builder(ir.InsertionPoint(block), loop.op.location)
        uses_wgmma = bool(plan.delayed) or any(loop.names[p] == "tilegpu.wgmma" for p in live)
        tokens = self._wait_for_threads(build, self.distance - 1, uses_wgmma)
        for delay in self.tma_delays:
            self._wait_for_tma(build, delay, slots[delay], parities[delay])
        vectors: dict[int, list[Copy]] = {}
        for copy in plan.copies:
            if copy.bulk:
                vectors.setdefault(self._read_behind(copy), []).append(copy)
        for copy in plan.copies:
            if not copy.bulk:
                self._arrived(build, copy, slots[copy.delay], [] if copy.by_tma else tokens)
        first_wait = next((p for p in live if loop.names[p] == "tilegpu.wgmma_wait"), None)
        self.slot_is_free = first_wait is not None and not plan.behind_wait
        if first_wait is None:
            self._issue_ahead(build, iv, slots)
        for position in live:
            if position == first_wait and not plan.behind_wait:
                self._issue_delayed(build, block, operands)
                self._issue_ahead(build, iv, slots)
                loop.ops[position].attributes["num"] = i32_attr(len(plan.delayed), self.context)
            block.append(loop.ops[position])
            for copy in vectors.get(position, []):
                self._arrived(build, copy, slots[0], [])
            self.behind(build, position)
            if position == first_wait and plan.behind_wait:
                self._issue_ahead(build, iv, slots)
        for delayed, result in zip(plan.delayed, self.results, strict=True):
            delayed_wgmma.wait(loop, delayed, result, block, live)
        # Operands of the delayed wgmmas, read here since the waits changed them.
        late = [v for d in plan.delayed for v in delayed_wgmma.next_operands(loop, d)]
        following = [v for a in self.aheads for v in a.state]
        wrapped = build.binary("arith.addi", slots[0], build.i32(1))
        is_end = compare(build, EQ, wrapped, build.i32(plan.slots))
        next_slot = build.value("arith.select", wrapped.type, [is_end, build.i32(0), wrapped])
        if parities:
            turned = build.binary("arith.xori", parities[0], build.value("arith.extui", parities[0].type, [is_end]))
            parities = [turned, *parities[:-1]]
        own = self.carried_on(build)
        build.op("scf.yield", [], [*own, *(loop.yields[i] for i in kept), *late, *following, next_slot, *slots[:-1], *parities])
        loop.iv.replace_all_uses_with(iv)
        for i, arg in zip(kept, carried, strict=True):
            loop.args[i].replace_all_uses_with(arg)

    def _read_behind(self, copy: Copy) -> int:
        """Return the position of the product behind which a vector is read: the last one in front of its first use."""
        loop = self.loop
        first = min(loop.position(use.owner.operation) for use in copy.load.results[0].uses)
        return max(p for p in range(first) if loop.names[p] == "tilegpu.wgmma")

    def _wait_for_threads(self, build: Builder, num: int, fence: bool) -> list[ir.Value]:
        """Wait until `num` groups of cp.async copies are in flight, if there are any; return the token. `fence`: wgmma reads them."""
        if not self.uses_threads:
            return []
        wait = build.op("tilegpu.async_wait", [self.token], [], {"num": i32_attr(num, self.context)})
        if fence:
            build.op("tilegpu.fence_async", [], [])
        return [wait.results[0]]

    def _wait_for_tma(self, build: Builder, delay: int, slot: ir.Value, parity: ir.Value) -> None:
        """Wait until the TMA copies into a slot have arrived."""
        build.op("tilegpu.mbarrier_wait", [], [self._mbarrier(build, self.aheads[delay], slot), parity])

    def _arrived(self, build: Builder, copy: Copy, index: ir.Value, token: list[ir.Value]) -> None:
        """Let the users of a load read the slot that has arrived."""
        slot = self._slot(build, copy, index)
        alloc = self.loop.ops[copy.alloc[0]] if copy.alloc else None
        if alloc is not None:
            alloc.results[0].replace_all_uses_with(slot)
        value = copy.load.results[0]
        if any(alloc is None or use.owner.operation != alloc for use in value.uses):
            attributes = {EACH_WARP: ir.UnitAttr.get(self.context)} if copy.by_each_warp else {}
            loaded = build.value("tilegpu.local_load", value.type, [slot, *token], attributes)
            self.loop.yields = [loaded if v == value else v for v in self.loop.yields]
            value.replace_all_uses_with(loaded)

    def _issue_ahead(self, build: Builder, iv: ir.Value, slots: list[ir.Value]) -> None:
        """Copy for the iterations ahead, each delay with the carried values of its own iteration."""
        loop = self.loop
        tokens = []
        for delay, ahead in enumerate(self.aheads):
            if ahead.copies:
                at, more = self.iteration_ahead(build, iv, delay)
                tokens += self._issue(build, ahead, at, more, slots[1 + self.plan.lag + delay])
                if ahead.loads:
                    left = build.binary("arith.subi", build.binary("arith.subi", loop.upper, iv), loop.step)
                    after = build.binary("arith.addi", at, loop.step)
                    self._fetch(build, ahead, after, compare(build, SGT, left, self.reach[delay]))
        if self.uses_threads:
            build.op("tilegpu.async_commit", [self.token], tokens)

    def _issue(self, build: Builder, ahead: _Ahead, iv: ir.Value, more: ir.Value, slot: ir.Value) -> list[ir.Value]:
        """Copy for the iteration of `iv` into `slot` if there are `more` iterations; move `ahead` to the next one. Return the tokens."""
        known = {load.results[0]: value for load, value in zip(ahead.loads, ahead.fetched, strict=True)}
        values = ahead.addresses.step(build, iv, known)
        if ahead.by_tma:
            self._copy_by_tma(build, ahead, values, more, slot)
        return [self._copy(build, copy, values, more, slot) for copy in ahead.by_threads]

    def _fetch(self, build: Builder, ahead: _Ahead, iv: ir.Value, more: ir.Value) -> None:
        """Load what the copies for the iteration of `iv` compute their addresses from, if there is such an iteration."""
        values = ahead.indices.step(build, iv, {}) if ahead.loads else {}
        ahead.fetched = [masked_load(build, load, values, more) for load in ahead.loads]

    def _copy_by_tma(self, build: Builder, ahead: _Ahead, values: Values, more: ir.Value, slot: ir.Value) -> None:
        mbarrier = self._mbarrier(build, ahead, slot)
        size = sum(block_bytes(copy.load.operands[0]) for copy in ahead.by_tma)
        build.op("tilegpu.mbarrier_expect", [], [mbarrier, more], {"bytes": i32_attr(size, self.context)})
        for copy in ahead.by_tma:
            operands = [values.get(v, v) for v in copy.load.operands]
            issue_load(build, copy.load, operands, self._slot(build, copy, slot), mbarrier, more)

    def _mbarrier(self, build: Builder, ahead: _Ahead, slot: ir.Value) -> ir.Value:
        return build.value("tilegpu.slot", mbarrier_type(self.context), [ahead.mbarriers, slot])

    def _copy(self, build: Builder, copy: Copy, values: Values, more: ir.Value, slot: ir.Value) -> ir.Value:
        pointer, *rest = (values.get(v, v) for v in copy.load.operands)
        mask = build.splat(more, tensor_type(pointer.type, self.i1))
        if rest:
            mask = build.binary("arith.andi", rest[0], mask)
        attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 0], self.context)}
        for name in ("cache", "evict", "tilegpu.vector"):
            if name in copy.load.attributes:
                attributes[name] = copy.load.attributes[name]
        if copy.by_each_warp:
            attributes[EACH_WARP] = ir.UnitAttr.get(self.context)
        if self.slot_is_free:
            attributes["tilegpu.slot_is_free"] = ir.UnitAttr.get(self.context)
        return build.value("tilegpu.async_copy", self.token, [pointer, self._slot(build, copy, slot), mask], attributes)

    def _slot(self, build: Builder, copy: Copy, index: ir.Value) -> ir.Value:
        return build.value("tilegpu.slot", buffer_type(copy.shared, copy.element), [copy.buffer, index])

    # Delayed wgmmas

    def _issue_delayed(self, build: Builder, block: ir.Block, operands: list[tuple[ir.Value, ir.Value]]) -> None:
        """Issue the wgmmas of the iteration before, on the operands that it left."""
        loop = self.loop
        self.results = []
        for delayed, (left, accumulator) in zip(self.plan.delayed, operands, strict=True):
            for view in delayed.views:
                block.append(loop.ops[view])
            right = loop.ops[delayed.issue].operands[1]
            self.results.append(delayed_wgmma.issue(build, loop, delayed, right, left, accumulator))

    # Behind the loop

    def _finish(self, new: ir.Operation, kept: list[int]) -> None:
        """Drain the copies and issue the delayed wgmmas of the last iteration."""
        loop, plan = self.loop, self.plan
        build = Builder.after(new)
        if self.uses_threads:
            build.op("tilegpu.async_wait", [self.token], [], {"num": i32_attr(0, self.context)})
        for position, i in enumerate(kept):
            loop.op.results[i].replace_all_uses_with(new.results[position])
        if not plan.delayed:
            return
        build.op("tilegpu.fence_async", [], [])
        first = len(kept) + 2 * len(plan.delayed) + sum(len(a.state) for a in self.aheads)
        last_slot = new.results[first + 1]
        if 1 in self.tma_delays:
            self._wait_for_tma(build, 1, last_slot, new.results[first + self.oldest + 2])
        for n, delayed in enumerate(plan.delayed):
            copy = next(c for c in plan.copies if delayed.alloc in c.alloc)
            right = delayed_wgmma.last_right_operand(build, loop, delayed, self._slot(build, copy, last_slot))
            left, accumulator = (new.results[len(kept) + 2 * n + k] for k in (0, 1))
            result = delayed_wgmma.issue(build, loop, delayed, right, left, accumulator)
            waited = build.value("tilegpu.wgmma_wait", result.type, [result], {"num": i32_attr(0, self.context)})
            loop.op.results[delayed.carried].replace_all_uses_with(waited)
