"""The producer's region of a specialized kernel: the loops around its sites with the scalars that their loads need, and the copies.

Before: the operations of the kernel still stand where they were; the slice says what of them the producer needs.
After: that is repeated in the region, one thread's code. Each group of blocks waits for its slot to be empty and is copied into it, in the
order in which consumers want them: the blocks of a delayed wgmma follow those of the next iteration's other wgmmas. Held blocks are copied
where the kernel loads them.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.analysis.specialization import Group, Site, Specialization
from tilewright.compiler.analysis.tree import key

from .building import Builder, Values, i32_attr
from .lower_tma import block_bytes, issue_load
from .rings import SGT, SLT, Place, Ring, Rings, buffer_slot, compare, flat, mbarrier_slot, unflat


def produce(ops: list[ir.Operation], build: Builder, plan: Specialization, rings: Rings) -> None:
    """Build the producer of `ops`, the consumers' operations, with `build`."""
    # The phase before the first one is over: all slots are empty at the start.
    places = _Producer(plan, rings).block(ops, build, {}, rings.start(build, 1))
    for number, site in {rings.index(site.loop.op): site for site in plan.sites}.items():
        ring, shared = rings.all[number], [i for i, group in enumerate(site.groups) if group.ctas]
        for _ in range(ring.slots if shared else 0):
            # Other CTAs arrive here: this one must not end before.
            for i in shared:
                build.op("tilegpu.mbarrier_wait", [], [mbarrier_slot(build, ring.empty[i], places[number].slot), places[number].parity])
            places[number] = places[number].next(build, ring.slots)


class _Producer:
    def __init__(self, plan: Specialization, rings: Rings):
        self.slice = plan.slice
        self.rings = rings
        self.sites = {key(site.loop.op): site for site in plan.sites}
        self.held = {key(block.load) for block in plan.held}

    def block(self, ops: list[ir.Operation], build: Builder, values: Values, places: list[Place]) -> list[Place]:
        """Repeat what the producer needs of `ops`; return the places in the rings after it."""
        for op in ops:
            if key(op) in self.slice.nests:
                places = self._for(op, build, values, places) if op.name == "scf.for" else self._if(op, build, values, places)
            elif key(op) in self.slice.ops:
                build.clone(op, values)
            elif key(op) in self.held:
                number = self.rings.index(op)
                ring, place = self.rings.all[number], places[number]
                self._fill(build, ring, 0, place, [(op, 0)], values)
                places = [p.next(build, ring.slots) if i == number else p for i, p in enumerate(places)]
        return places

    def _for(self, op: ir.Operation, build: Builder, values: Values, places: list[Place]) -> list[Place]:
        loop = Loop(op)
        kept = sorted(self.slice.nests[key(op)])
        late = _Late(self.sites.get(key(op)))
        bounds = [values.get(v, v) for v in (loop.lower, loop.upper, loop.step)]
        inits = [values.get(loop.inits[i], loop.inits[i]) for i in kept] + flat(places) + late.initial(build)
        types = [v.type for v in inits]
        attributes = {"unsignedCmp": op.attributes["unsignedCmp"]} if "unsignedCmp" in op.attributes else {}
        new = build.op("scf.for", types, [*bounds, *inits], attributes, regions=1)
        block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[op.location] * (len(types) + 1))
        iv, *args = block.arguments
        inner = {**values, loop.iv: iv, **{loop.args[i]: arg for i, arg in zip(kept, args, strict=False)}}
        inside = Builder(ir.InsertionPoint(block), op.location)
        after = self.block(loop.ops[:-1], inside, inner, unflat(args[len(kept) : late.start(inits)]))
        site = self.sites.get(key(op))
        if site is not None:
            number = self.rings.index(op)
            self._copy(site, site.early, inside, inner, after[number])
            if late.groups:
                self._copy_late(inside, compare(inside, SGT, iv, bounds[0]), site, late, args[late.start(inits) :])
            late.end_iteration(inner, after[number])
            after = [p.next(inside, self.rings.all[number].slots) if i == number else p for i, p in enumerate(after)]
        inside.op("scf.yield", [], [*(inner.get(loop.yields[i], loop.yields[i]) for i in kept), *flat(after), *late.carried])
        if late.groups:
            self._copy_late(build, compare(build, SLT, bounds[0], bounds[1]), site, late, list(new.results)[late.start(inits) :])
        values.update({op.results[i]: new.results[position] for position, i in enumerate(kept)})
        return unflat(list(new.results)[len(kept) : late.start(inits)])

    def _if(self, op: ir.Operation, build: Builder, values: Values, places: list[Place]) -> list[Place]:
        kept = sorted(self.slice.nests[key(op)])
        types = [op.results[i].type for i in kept] + [v.type for v in flat(places)]
        new = build.op("scf.if", types, [values.get(op.operands[0], op.operands[0])], regions=2)
        for region, target in zip(op.regions, new.regions, strict=True):
            inside = Builder(ir.InsertionPoint(target.blocks.append()), op.location)
            inner, after, yields = dict(values), places, []
            if len(region.blocks):
                *body, end = (o.operation for o in region.blocks[0].operations)
                after = self.block(body, inside, inner, places)
                yields = [inner.get(end.operands[i], end.operands[i]) for i in kept]
            inside.op("scf.yield", [], [*yields, *flat(after)])
        values.update({op.results[i]: new.results[position] for position, i in enumerate(kept)})
        return unflat(list(new.results)[len(kept) :])

    def _copy(self, site: Site, groups: list[Group], build: Builder, values: Values, place: Place) -> None:
        """Copy the blocks of some groups for one iteration into the ring's slot."""
        ring = self.rings.all[self.rings.index(site.loop.op)]
        for group in groups:
            self._fill(build, ring, site.number(group), place, [(site.loop.ops[b.load], b.multicast) for b in group.blocks], values)

    def _fill(self, build: Builder, ring: Ring, number: int, place: Place, loads: list[tuple[ir.Operation, int]], values: Values) -> None:
        """Fill a slot of the group of this number of a ring, when it is empty; `loads` of its blocks, with the CTAs that share them."""
        if ring.empty:
            build.op("tilegpu.mbarrier_wait", [], [mbarrier_slot(build, ring.empty[number], place.slot), place.parity])
        mbarrier = mbarrier_slot(build, ring.full[number], place.slot)
        size = sum(block_bytes(load.operands[0]) for load, _ in loads)
        build.op("tilegpu.mbarrier_expect", [], [mbarrier], {"bytes": i32_attr(size, build.loc.context)})
        for (load, multicast), buffer in zip(loads, ring.buffers[number], strict=True):
            operands = [values.get(v, v) for v in load.operands]
            issue_load(build, load, operands, buffer_slot(build, buffer, place.slot), mbarrier, multicast=multicast)

    def _copy_late(self, build: Builder, condition: ir.Value, site: Site, late: _Late, carried: list[ir.Value]) -> None:
        """Copy the blocks of delayed wgmmas for the iteration before, where `condition` says that there was one."""
        branch = build.op("scf.if", [], [condition], regions=2)
        inside = Builder(ir.InsertionPoint(branch.regions[0].blocks.append()), build.loc)
        place, values = late.unpack(carried)
        self._copy(site, late.groups, inside, values, place)
        inside.op("scf.yield", [], [])


class _Late:
    """What a loop carries for the copies of delayed wgmmas' blocks, which the next iteration makes: the place in the ring, and the indices
    that the loop computes."""

    def __init__(self, site: Site | None):
        self.groups = [] if site is None else [g for g in site.groups if g.delayed is not None]
        self.indices: list[ir.Value] = []
        self.carried: list[ir.Value] = []
        if self.groups:
            operands = [v for g in self.groups for b in g.blocks for v in site.loop.ops[b.load].operands]
            inside = [v for v in operands if v == site.loop.iv or v in site.loop.args or site.loop.definition(v) is not None]
            self.indices = list(dict.fromkeys(inside))

    def start(self, inits: list[ir.Value]) -> int:
        """Return the index of the first of its values among those that the loop carries."""
        return len(inits) - (2 + len(self.indices) if self.groups else 0)

    def initial(self, build: Builder) -> list[ir.Value]:
        """Return values of the right types for the first iteration, which ignores them."""
        if not self.groups:
            return []
        return [build.i32(0), build.i32(0), *(build.integer(v.type, 0) for v in self.indices)]

    def end_iteration(self, values: Values, place: Place) -> None:
        """Note what the next iteration is to copy."""
        if self.groups:
            self.carried = [*flat([place]), *(values.get(v, v) for v in self.indices)]

    def unpack(self, carried: list[ir.Value]) -> tuple[Place, Values]:
        """Return the place, and what the indices are."""
        slot, parity, *indices = carried
        return Place(slot, parity), dict(zip(self.indices, indices, strict=True))
