"""A consumers' loop with wgmmas that work on what other wgmmas of their iteration made (attention): no wgmma waits for the work between.

Before: see `consumer_loop`; `Site.delayed` are the later products, `Site.ahead` the first ones with what they need.
After: the loop starts in the middle of the old one's body, so that each turn issues the first products of the next iteration and the later
ones of this iteration together, and works on the former's result while the latter run:

    wait for the first blocks; first products; wait for them
    while:
        work on the first products' result             the later products of the iteration before run
        wait for these; release their blocks; what works on their results, and what writes their left operand
      do, if there is another iteration:
        wait for the next first blocks; first products of the next iteration
        what the iteration does to the later products' accumulators (`late_updates`)
        wait for the blocks of the later products; later products of this iteration
        wait for the first products; release their blocks
    the same to the accumulators; wait for the last blocks; later products of the last iteration; wait for them

What the later products' left operands need of reductions of the first products' result stands in a branch that is always taken: so ptxas
leaves it in front of the wait for the later products, which then gives time for it and none to spare (`keep_reductions_ahead`).

With `Site.turns`, warpgroups issue their products one after the other: each waits for its turn in front of the first products and passes it
on behind the later ones, at named barriers of two warpgroups each. So one works on its results while another's products run.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler import named_barriers
from tilewright.compiler.analysis.specialization import Group, first_wait
from tilewright.compiler.analysis.wgmma_loops import Delayed

from . import delayed_wgmma
from .building import Builder, Values, i32_attr
from .consumer_loop import ConsumerLoop
from .late_updates import update_of
from .rings import SGT, Place, compare, flat, unflat

_WARPGROUP_THREADS = 128


def turn_attributes(turns: int, context: ir.Context) -> dict[str, ir.Attribute]:
    """Return the attributes of the named barriers of warpgroups that take turns: two of them meet at each."""
    threads = 2 * _WARPGROUP_THREADS
    return {"id": i32_attr(named_barriers.TURNS, context), "threads": i32_attr(threads, context), "tilegpu.turns": i32_attr(turns, context)}


class DelayedLoop(ConsumerLoop):
    """The rewriting of a site with delayed wgmmas."""

    def results(self, kept: list[int]) -> list[int]:
        """Return the indices of the results that `make` returns, in that order."""
        return kept + [d.carried for d in self.site.delayed]

    def make(self, build: Builder, live: list[int], kept: list[int]) -> tuple[list[ir.Value], Place]:
        """Build the loop, and what stands in front of it and behind it; return its results and the place behind it."""
        loop, site = self.loop, self.site
        self.always = delayed_wgmma.always(build)
        shared = any(group.ctas for group in site.groups)
        self.updates = [update_of(loop, d, shared) for d in site.delayed]
        first = self._first_products(build, live, self.place)
        self.pass_turn(build)
        waited = self._wait_for_first(build, first, self.place, 0)
        accumulators = [loop.inits[d.carried] for d in site.delayed]
        inits = [loop.lower, *(loop.inits[i] for i in kept), *waited, *accumulators, *flat([self.place, self.place])]
        lefts = [loop.ops[d.issue].operands[0] for d in site.delayed]
        carried = [loop.lower, *(loop.inits[i] for i in kept), *lefts, *accumulators, *self._reads(), *flat([self.place])]
        types = [v.type for v in carried]
        schedule = {"tilegpu.delayed": i32_attr(len(site.delayed), self.context), "tilegpu.turns": i32_attr(site.turns, self.context)}
        new = build.op("scf.while", types, inits, schedule, regions=2)
        location = loop.op.location
        work = new.regions[0].blocks.append(*[v.type for v in inits], arg_locs=[location] * len(inits))
        issue = new.regions[1].blocks.append(*types, arg_locs=[location] * len(types))
        self._issue(issue, live, kept)
        self._work(work, live, kept)
        values = list(new.results)[1 + len(kept) : -2]
        (place,) = unflat(list(new.results)[-2:])
        results = []
        for delayed, result in zip(site.delayed, self._later_products(build, values, place), strict=True):
            results.append(build.value("tilegpu.wgmma_wait", result.type, [result], {"num": i32_attr(0, self.context)}))
            self.release(build, self._group(delayed), place.slot, None)
        return [*list(new.results)[1 : 1 + len(kept)], *results], place.next(build, self.ring.slots)

    def _reads(self) -> list[ir.Value]:
        """Return what the updates of the accumulators read besides."""
        return [v for update in self.updates if update is not None for v in update.reads(self.loop)]

    def _group(self, delayed: Delayed) -> Group:
        return next(g for g in self.site.groups if g.delayed is delayed)

    # Turns

    def take_turn(self, build: Builder) -> None:
        """Where warpgroups take turns at the tensor cores: wait for one's own."""
        if self.site.turns:
            build.op("tilegpu.named_barrier_sync", [], [], turn_attributes(self.site.turns, self.context))

    def pass_turn(self, build: Builder) -> None:
        """Let the next warpgroup have its turn."""
        if self.site.turns:
            build.op("tilegpu.named_barrier_arrive", [], [], turn_attributes(self.site.turns, self.context))

    # The first products

    def _first_products(self, build: Builder, live: list[int], place: Place) -> Values:
        """Wait for the blocks of the first products and issue these; return what the copied operations made."""
        values: Values = {}
        for group in self.site.early:
            if group.first in self.site.ahead:
                self._read_slots(group, self.wait_full(build, group, place), values)
        self.take_turn(build)
        for position in live:
            if position in self.site.ahead:
                build.clone(self.loop.ops[position], values)
        return values

    def _read_slots(self, group: Group, slots: list[ir.Value], values: Values) -> None:
        for block, slot in zip(group.blocks, slots, strict=True):
            values[self.loop.ops[block.alloc].results[0]] = slot

    def _wait_for_first(self, build: Builder, values: Values, place: Place, in_flight: int) -> list[ir.Value]:
        """Wait for the first products, with so many later ones in flight; release what only they read. Return their results."""
        wait = self.loop.ops[first_wait(self.site)]
        pending = [values.get(v, v) for v in wait.operands]
        made = build.op("tilegpu.wgmma_wait", [v.type for v in pending], pending, {"num": i32_attr(in_flight, self.context)})
        for group in self.site.early:
            if group.last in self.site.ahead:
                self.release(build, group, place.slot, None)
        return list(made.results)

    # The two parts of the loop

    def _issue(self, block: ir.Block, live: list[int], kept: list[int]) -> None:
        """Fill the part that issues the first products of the next iteration and the later products of this one."""
        iv, *args = block.arguments
        build = Builder(ir.InsertionPoint(block), self.loop.op.location)
        (place,) = unflat(args[-2:])
        following = place.next(build, self.ring.slots)
        first = self._first_products(build, live, following)
        results = self._later_products(
            build, args[len(kept) : -2], place, sum(self.loop.names[p] == "tilegpu.wgmma" for p in self.site.ahead)
        )
        self.pass_turn(build)
        waited = self._wait_for_first(build, first, following, len(results))
        next_iv = build.binary("arith.addi", iv, self.loop.step)
        build.op("scf.yield", [], [next_iv, *args[: len(kept)], *waited, *results, *flat([following, place])])

    def _later_products(self, build: Builder, operands: list[ir.Value], place: Place, in_flight: int = 0) -> list[ir.Value]:
        """Update the accumulators of the delayed wgmmas and issue these; return what is pending. `operands`: their left operands, their
        accumulators, and what the updates read."""
        results = []
        count = len(self.site.delayed)
        lefts, accumulators, reads = operands[:count], operands[count : 2 * count], list(operands[2 * count :])
        accumulators = [self._updated(build, i, accumulator, reads, in_flight) for i, accumulator in enumerate(accumulators)]
        for delayed, left, accumulator in zip(self.site.delayed, lefts, accumulators, strict=True):
            results.append(self._issue_later(build, delayed, left, accumulator, place))
        return results

    def _updated(self, build: Builder, number: int, accumulator: ir.Value, reads: list[ir.Value], in_flight: int) -> ir.Value:
        """Return the accumulator of a delayed wgmma behind its update, which takes what it reads off `reads`. It stands behind the wgmmas
        `in_flight`: a wait that leaves them so keeps it there."""
        update = self.updates[number]
        if update is None:
            return accumulator
        read, reads[:] = reads[: len(update.factors)], reads[len(update.factors) :]
        if in_flight:
            accumulator = build.value("tilegpu.wgmma_wait", accumulator.type, [accumulator], {"num": i32_attr(in_flight, self.context)})
        return update.make(build, self.loop, self.site.delayed[number], accumulator, read)

    def _issue_later(self, build: Builder, delayed: Delayed, left: ir.Value, accumulator: ir.Value, place: Place) -> ir.Value:
        """Wait for the blocks of a delayed wgmma and issue it; return what is pending."""
        (slot,) = self.wait_full(build, self._group(delayed), place)
        right = delayed_wgmma.last_right_operand(build, self.loop, delayed, slot)
        return delayed_wgmma.issue(build, self.loop, delayed, right, left, accumulator)

    def _work(self, block: ir.Block, live: list[int], kept: list[int]) -> None:
        """Fill the part that works on the first products' result; operations of the old body move there."""
        loop, site = self.loop, self.site
        iv, *args = block.arguments
        place, last = unflat(args[-4:])
        build = Builder(ir.InsertionPoint(block), loop.op.location)
        first = loop.ops[first_wait(site)]
        results, pending = args[len(kept) : -4][: len(first.results)], args[len(kept) : -4][len(first.results) :]
        moved = {p for update in self.updates if update is not None for p in update.positions(loop)}
        rest = [p for p in live if p not in site.ahead and p not in moved and loop.ops[p] != first]
        self._repeat_for(build, rest, place)
        arrivals, releases = self.arrivals(rest), self.releases()
        for position in rest:
            for group in arrivals.get(position, []):
                if group.first not in site.ahead:
                    self.arrive(build, group, place)
            for group in releases.get(position, []):
                if group.last not in site.ahead:
                    self.release(build, group, place.slot, None)
            block.append(loop.ops[position])
        again = compare(build, SGT, iv, loop.lower)
        waited = []
        for delayed, result in zip(site.delayed, pending, strict=True):
            branch = delayed_wgmma.keep_reductions_ahead(loop, delayed, rest, self.always)
            wait = delayed_wgmma.wait(loop, delayed, result, block, rest, branch)
            self.release(Builder.after(wait), self._group(delayed), last.slot, again)
            waited.append(wait.results[0])
        for group in releases.get(len(loop.ops) - 1, []):
            self.release(build, group, place.slot, None)
        more = compare(build, SGT, build.binary("arith.subi", loop.upper, iv), loop.step)
        lefts, updated = zip(*(delayed_wgmma.next_operands(loop, d) for d in site.delayed), strict=True)
        accumulators = [w if u is not None else a for w, u, a in zip(waited, self.updates, updated, strict=True)]
        passed = [iv, *(loop.yields[i] for i in kept), *lefts, *accumulators, *self._reads(), *flat([place])]
        build.op("scf.condition", [], [more, *passed])
        for old, new in zip((loop.iv, *first.results), (iv, *results), strict=True):
            old.replace_all_uses_with(new)
        for i, arg in zip(kept, args, strict=False):
            loop.args[i].replace_all_uses_with(arg)

    def _repeat_for(self, build: Builder, rest: list[int], place: Place) -> None:
        """Repeat what of the first products' operands the rest of the body uses too."""
        loop = self.loop
        needed: list[int] = []
        for position in sorted(self.site.ahead, reverse=True):
            users = {loop.position(use.owner.operation) for result in loop.ops[position].results for use in result.uses}
            if loop.names[position] != "tilegpu.wgmma" and users & {*rest, *needed}:
                needed.append(position)
        values: Values = {}
        for group in self.site.early:
            if any(block.alloc in needed for block in group.blocks):
                self._read_slots(group, self.slots(build, group, place), values)
        for position in reversed(needed):
            op = loop.ops[position]
            if op.name != "tilegpu.local_alloc":
                build.clone(op, values)
            op.results[0].replace_all_uses_with(values[op.results[0]])
