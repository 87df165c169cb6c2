"""The consumers' region of a specialized kernel: its own operations, where the loads of each site became waits for slots that are full.

Before: the region holds the kernel's operations, unchanged. After: each site waits for its blocks in front of their first use and arrives
at `empty` behind the wait for their last wgmma; loops and branches around sites carry the places in the rings.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.analysis.specialization import Group, Site, first_wait, wait_behind
from tilewright.compiler.analysis.tree import key

from . import delayed_wgmma
from .building import Builder, i32_attr
from .rings import Place, Ring, Rings, buffer_slot, compare, flat, mbarrier_slot, unflat

_SLT, _SGT = 2, 4


def consume(block: ir.Block, sites: list[Site], rings: Rings) -> None:
    """Rewrite the consumers' region, whose block this is."""
    around: set[int] = set()
    for site in sites:
        op = site.loop.op
        while op.name != "tilegpu.warp_specialize":
            around.add(key(op))
            op = op.parent.operation
    first = block.operations[0].operation
    _Consumer(sites, rings, around).block(block, rings.start(Builder.before(first), 0))


class _Consumer:
    def __init__(self, sites: list[Site], rings: Rings, around: set[int]):
        self.sites = {key(site.loop.op): site for site in sites}
        self.rings = rings
        self.around = around

    def block(self, block: ir.Block, places: list[Place]) -> list[Place]:
        """Rewrite the sites inside `block`; return the places in the rings after it."""
        for op in [o.operation for o in block.operations]:
            if key(op) not in self.around:
                continue
            site = self.sites.get(key(op))
            if site is not None:
                number = self.rings.index(op)
                after = _SiteLoop(site, self.rings.all[number], places[number]).run()
                places = [after if i == number else p for i, p in enumerate(places)]
            else:
                places = self._nest(op, places)
        return places

    def _nest(self, op: ir.Operation, places: list[Place]) -> list[Place]:
        """Let a loop or branch around sites carry the places."""
        carried = flat(places)
        is_loop = op.name == "scf.for"
        types = [*(r.type for r in op.results), *(v.type for v in carried)]
        attributes = {name: op.attributes[name] for name in op.attributes}
        operands = [*op.operands, *carried] if is_loop else list(op.operands)
        new = Builder.before(op).op(op.name, types, operands, attributes, regions=len(op.regions))
        for region, target in zip(op.regions, new.regions, strict=True):
            args = [new.operands[0].type, *types] if is_loop else []
            block = target.blocks.append(*args, arg_locs=[op.location] * len(args))
            inside = places
            if is_loop:
                inside = unflat(list(block.arguments)[len(args) - len(carried) :])
            yields: list[ir.Value] = []
            if len(region.blocks):
                old = region.blocks[0]
                for argument, replacement in zip(old.arguments, block.arguments, strict=False):
                    argument.replace_all_uses_with(replacement)
                *body, end = (o.operation for o in old.operations)
                for inner in body:
                    block.append(inner)
                after = self.block(block, inside)
                yields = list(end.operands)
            else:
                after = inside
            Builder(ir.InsertionPoint(block), op.location).op("scf.yield", [], [*yields, *flat(after)])
        for old, result in zip(op.results, new.results, strict=False):
            old.replace_all_uses_with(result)
        op.erase()
        return unflat(list(new.results)[len(types) - len(carried) :])


class _SiteLoop:
    """The rewriting of one site: live operations move to a new loop beside the old one."""

    def __init__(self, site: Site, ring: Ring, place: Place):
        # Read again: what stands in front of the loop may have been rewritten.
        site.loop = Loop(site.loop.op)
        self.site = site
        self.loop = site.loop
        self.ring = ring
        self.place = place
        self.context = site.loop.op.context

    def run(self) -> Place:
        """Do it; return the place in the ring behind the loop."""
        loop, site = self.loop, self.site
        before = Builder.before(loop.op)
        gone = {*site.unused, *(p for g in site.groups for b in g.blocks for p in (b.load, b.alloc, b.fence) if p is not None)}
        live, kept = loop.live(gone)
        live -= {p for d in site.delayed for p in (d.issue, d.wait, *d.views)}
        kept = sorted(kept - {d.carried for d in site.delayed})
        results = kept + [d.carried for d in site.delayed]
        # What is in flight behind the loop must not meet the values of a loop that did not run.
        ran = compare(before, _SLT, loop.lower, loop.upper)
        types = [loop.inits[i].type for i in results] + [v.type for v in flat([self.place])]
        branch = before.op("scf.if", types, [ran], regions=2)
        inside = Builder(ir.InsertionPoint(branch.regions[0].blocks.append()), loop.op.location)
        new = self._make_loop(inside, sorted(live), kept)
        place, last = unflat(list(new.results)[-4:])
        late = self._finish(inside, list(new.results)[len(kept) : -4], last)
        inside.op("scf.yield", [], [*list(new.results)[: len(kept)], *late, *flat([place])])
        otherwise = Builder(ir.InsertionPoint(branch.regions[1].blocks.append()), loop.op.location)
        otherwise.op("scf.yield", [], [*(loop.inits[i] for i in results), *flat([self.place])])
        for i, result in zip(results, branch.results, strict=False):
            loop.op.results[i].replace_all_uses_with(result)
        loop.op.erase()
        return Place(*list(branch.results)[-2:])

    def _make_loop(self, build: Builder, live: list[int], kept: list[int]) -> ir.Operation:
        """Create the new loop; it carries the values `kept`, the operands of delayed wgmmas, and two places."""
        loop = self.loop
        late = [v for d in self.site.delayed for v in delayed_wgmma.initial_operands(build, loop, d)]
        # The place of the iteration before is carried too: what that one left in flight still reads its slot.
        inits = [*(loop.inits[i] for i in kept), *late, *flat([self.place, self.place])]
        types = [v.type for v in inits]
        attributes = {name: loop.op.attributes[name] for name in loop.op.attributes}
        new = build.op("scf.for", types, [loop.lower, loop.upper, loop.step, *inits], attributes, regions=1)
        block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[loop.op.location] * (len(types) + 1))
        self._fill(block, live, kept)
        return new

    def _fill(self, block: ir.Block, live: list[int], kept: list[int]) -> None:
        loop, site = self.loop, self.site
        iv, *args = block.arguments
        late = args[len(kept) : -4]
        place, last = unflat(args[-4:])
        build = Builder(ir.InsertionPoint(block), loop.op.location)
        # Whether there was an iteration before.
        again = compare(build, _SGT, iv, loop.lower)
        results: list[ir.Value] = []
        arrivals = self._arrivals(live)
        releases = self._releases(live)
        first = first_wait(site)
        for position in live:
            for group in arrivals.get(position, []):
                self._arrive(build, group, place)
            if position == first and site.delayed:
                results = self._issue_delayed(block, build, late, last, again, iv)
                loop.ops[position].attributes["num"] = i32_attr(len(site.delayed), self.context)
            for group in releases.get(position, []):
                self._release(build, group, place.slot, None)
            block.append(loop.ops[position])
            if position == first and site.in_flight:
                for group in site.groups:
                    self._release(build, group, last.slot, again)
        for delayed, result in zip(site.delayed, results, strict=True):
            wait = delayed_wgmma.wait(loop, delayed, result, block, live)
            group = next(g for g in site.groups if g.delayed is delayed)
            self._release(Builder.after(wait), group, last.slot, again)
        for group in releases.get(len(loop.ops) - 1, []):
            self._release(build, group, place.slot, None)
        operands = [v for d in site.delayed for v in delayed_wgmma.next_operands(loop, d)]
        following = [place.next(build, self.ring.slots), place]
        build.op("scf.yield", [], [*(loop.yields[i] for i in kept), *operands, *flat(following)])
        loop.iv.replace_all_uses_with(iv)
        for i, arg in zip(kept, args, strict=False):
            loop.args[i].replace_all_uses_with(arg)

    def _arrivals(self, live: list[int]) -> dict[int, list[Group]]:
        """Return in front of which operation each group that is used in its own iteration is waited for."""
        out: dict[int, list[Group]] = {}
        for group in self.site.groups:
            if group.delayed is None:
                out.setdefault(next(p for p in live if p >= group.first), []).append(group)
        return out

    def _releases(self, live: list[int]) -> dict[int, list[Group]]:
        """Return in front of which operation each group that is released in its own iteration is: the first that uses what its last wgmma
        made, so that the wait may sink to there."""
        out: dict[int, list[Group]] = {}
        if self.site.in_flight:
            return out
        end = len(self.loop.ops) - 1
        for group in self.site.groups:
            if group.delayed is None:
                results = self.loop.ops[wait_behind(self.site, group)].results
                users = [p for r in results for use in r.uses if (p := self.loop.position(use.owner.operation)) is not None]
                out.setdefault(min(users, default=end), []).append(group)
        return out

    def _wait_full(self, build: Builder, group: Group, place: Place, condition: ir.Value | None = None) -> list[ir.Value]:
        """Wait for the blocks of a group, where `condition` holds; return the slots of its buffers."""
        number = self.site.number(group)
        optional = [] if condition is None else [condition]
        mbarrier = mbarrier_slot(build, self.ring.full[number], place.slot)
        build.op("tilegpu.mbarrier_wait", [], [mbarrier, place.parity, *optional])
        return [buffer_slot(build, buffer, place.slot) for buffer in self.ring.buffers[number]]

    def _arrive(self, build: Builder, group: Group, place: Place, condition: ir.Value | None = None) -> None:
        """Wait for the blocks of a group and let their readers read the slots."""
        for block, slot in zip(group.blocks, self._wait_full(build, group, place, condition), strict=True):
            self.loop.ops[block.alloc].results[0].replace_all_uses_with(slot)

    def _release(self, build: Builder, group: Group, slot: ir.Value, condition: ir.Value | None) -> None:
        """Give a slot of a group back to the producer: one thread of each warpgroup says so."""
        mbarrier = mbarrier_slot(build, self.ring.empty[self.site.number(group)], slot)
        optional = [] if condition is None else [condition]
        attributes = {"count": i32_attr(1, self.context), "tilegpu.each_warpgroup": ir.UnitAttr.get(self.context)}
        build.op("tilegpu.mbarrier_arrive", [], [mbarrier, *optional], attributes)

    def _issue_delayed(
        self, block: ir.Block, build: Builder, late: list[ir.Value], last: Place, again: ir.Value, iv: ir.Value
    ) -> list[ir.Value]:
        """Issue the wgmmas of the iteration before; those of the second iteration are the first that count."""
        loop = self.loop
        passed = build.binary("arith.subi", iv, loop.lower)
        counts = compare(build, _SGT, passed, loop.step)
        results = []
        for n, delayed in enumerate(self.site.delayed):
            group = next(g for g in self.site.groups if g.delayed is delayed)
            self._arrive(build, group, last, again)
            for view in delayed.views:
                block.append(loop.ops[view])
            right = loop.ops[delayed.issue].operands[1]
            results.append(delayed_wgmma.issue(build, loop, delayed, right, late[2 * n], late[2 * n + 1], counts))
        return results

    def _finish(self, build: Builder, late: list[ir.Value], last: Place) -> list[ir.Value]:
        """Behind the loop: release the slots still held; issue the delayed wgmmas of its last iteration and return their results."""
        loop, site = self.loop, self.site
        if site.in_flight:
            for group in site.groups:
                self._release(build, group, last.slot, None)
        if not site.delayed:
            return []
        length = build.binary("arith.subi", loop.upper, loop.lower)
        counts = compare(build, _SGT, length, loop.step)
        results = []
        for n, delayed in enumerate(site.delayed):
            group = next(g for g in site.groups if g.delayed is delayed)
            (slot,) = self._wait_full(build, group, last)
            right = delayed_wgmma.last_right_operand(build, loop, delayed, slot)
            result = delayed_wgmma.issue(build, loop, delayed, right, late[2 * n], late[2 * n + 1], counts)
            results.append(build.value("tilegpu.wgmma_wait", result.type, [result], {"num": i32_attr(0, self.context)}))
            self._release(build, group, last.slot, None)
        return results
