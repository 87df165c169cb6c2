"""One site's loop in the consumers' region: its loads became waits for slots that are full (see `tilegpu-warp-specialize`).

Before: the loop holds descriptor loads, the allocations of their blocks and wgmmas. After: it waits for each group of blocks in front of
the first use, and arrives at `empty` behind the wait for the last wgmma that reads it; it carries its place in the ring.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.analysis.specialization import Group, Site, first_wait, wait_behind

from .building import Builder, i32_attr
from .rings import SGT, SLT, Place, Ring, buffer_slot, compare, flat, mbarrier_slot, unflat


class ConsumerLoop:
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
        loop = self.loop
        before = Builder.before(loop.op)
        live, kept = self.live()
        # What is in flight behind the loop must not meet the values of a loop that did not run.
        ran = compare(before, SLT, loop.lower, loop.upper)
        results = self.results(kept)
        types = [loop.inits[i].type for i in results] + [v.type for v in flat([self.place])]
        branch = before.op("scf.if", types, [ran], regions=2)
        inside = Builder(ir.InsertionPoint(branch.regions[0].blocks.append()), loop.op.location)
        values, place = self.make(inside, live, kept)
        inside.op("scf.yield", [], [*values, *flat([place])])
        otherwise = Builder(ir.InsertionPoint(branch.regions[1].blocks.append()), loop.op.location)
        otherwise.op("scf.yield", [], [*(loop.inits[i] for i in results), *flat([self.place])])
        for i, result in zip(results, branch.results, strict=False):
            loop.op.results[i].replace_all_uses_with(result)
        loop.op.erase()
        return Place(*list(branch.results)[-2:])

    def live(self) -> tuple[list[int], list[int]]:
        """Return the positions of the operations that stay, and the indices of the carried values that the new loop carries as they are."""
        site = self.site
        gone = {*site.unused, *(p for g in site.groups for b in g.blocks for p in (b.load, b.alloc, b.fence) if p is not None)}
        live, kept = self.loop.live(gone)
        live -= {p for d in site.delayed for p in (d.issue, d.wait, *d.views)}
        return sorted(live), sorted(kept - {d.carried for d in site.delayed})

    def results(self, kept: list[int]) -> list[int]:
        """Return the indices of the results that `make` returns, in that order."""
        return kept

    def make(self, build: Builder, live: list[int], kept: list[int]) -> tuple[list[ir.Value], Place]:
        """Build the loop, and what drains it; return its results and the place behind it."""
        loop = self.loop
        # The place of the iteration before is carried too: what that one left in flight still reads its slot.
        inits = [*(loop.inits[i] for i in kept), *flat([self.place, self.place])]
        types = [v.type for v in inits]
        attributes = {name: loop.op.attributes[name] for name in loop.op.attributes}
        new = build.op("scf.for", types, [loop.lower, loop.upper, loop.step, *inits], attributes, regions=1)
        block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[loop.op.location] * (len(types) + 1))
        self._fill(block, live, kept)
        place, last = unflat(list(new.results)[-4:])
        if self.site.in_flight:
            for group in self.site.groups:
                self.release(build, group, last.slot, None)
        return list(new.results)[: len(kept)], place

    def _fill(self, block: ir.Block, live: list[int], kept: list[int]) -> None:
        loop, site = self.loop, self.site
        iv, *args = block.arguments
        place, last = unflat(args[-4:])
        build = Builder(ir.InsertionPoint(block), loop.op.location)
        # Whether there was an iteration before.
        again = compare(build, SGT, iv, loop.lower)
        arrivals = self.arrivals(live)
        releases = self.releases()
        first = first_wait(site)
        for position in live:
            for group in arrivals.get(position, []):
                self.arrive(build, group, place)
            for group in releases.get(position, []):
                self.release(build, group, place.slot, None)
            block.append(loop.ops[position])
            if position == first and site.in_flight:
                for group in site.groups:
                    self.release(build, group, last.slot, again)
        for group in releases.get(len(loop.ops) - 1, []):
            self.release(build, group, place.slot, None)
        following = [place.next(build, self.ring.slots), place]
        build.op("scf.yield", [], [*(loop.yields[i] for i in kept), *flat(following)])
        loop.iv.replace_all_uses_with(iv)
        for i, arg in zip(kept, args, strict=False):
            loop.args[i].replace_all_uses_with(arg)

    def arrivals(self, live: list[int]) -> dict[int, list[Group]]:
        """Return in front of which operation each group that is used in its own iteration is waited for."""
        out: dict[int, list[Group]] = {}
        for group in self.site.early:
            out.setdefault(next(p for p in live if p >= group.first), []).append(group)
        return out

    def releases(self) -> dict[int, list[Group]]:
        """Return in front of which operation each group that is released in its own iteration is: the first that uses what its last wgmma
        made, so that the wait may sink to there."""
        out: dict[int, list[Group]] = {}
        if self.site.in_flight:
            return out
        end = len(self.loop.ops) - 1
        for group in self.site.early:
            results = self.loop.ops[wait_behind(self.site, group)].results
            users = [p for r in results for use in r.uses if (p := self.loop.position(use.owner.operation)) is not None]
            out.setdefault(min(users, default=end), []).append(group)
        return out

    def wait_full(self, build: Builder, group: Group, place: Place) -> list[ir.Value]:
        """Wait for the blocks of a group; return the slots of its buffers."""
        mbarrier = mbarrier_slot(build, self.ring.full[self.site.number(group)], place.slot)
        build.op("tilegpu.mbarrier_wait", [], [mbarrier, place.parity])
        return self.slots(build, group, place)

    def slots(self, build: Builder, group: Group, place: Place) -> list[ir.Value]:
        """Return the slots of the buffers of a group."""
        return [buffer_slot(build, buffer, place.slot) for buffer in self.ring.buffers[self.site.number(group)]]

    def arrive(self, build: Builder, group: Group, place: Place) -> None:
        """Wait for the blocks of a group and let their readers read the slots."""
        for block, slot in zip(group.blocks, self.wait_full(build, group, place), strict=True):
            self.loop.ops[block.alloc].results[0].replace_all_uses_with(slot)

    def release(self, build: Builder, group: Group, slot: ir.Value, condition: ir.Value | None) -> None:
        """Give a slot of a group back to the producer: one thread of each warpgroup says so, to
        the producers of all CTAs that fill it."""
        mbarrier = mbarrier_slot(build, self.ring.empty[self.site.number(group)], slot)
        optional = [] if condition is None else [condition]
        attributes = {"count": i32_attr(1, self.context), "tilegpu.each_warpgroup": ir.UnitAttr.get(self.context)}
        if group.ctas:
            attributes["tilegpu.ctas"] = i32_attr(group.ctas, self.context)
        build.op("tilegpu.mbarrier_arrive", [], [mbarrier, *optional], attributes)
