"""The producer's region of a specialized kernel: the loops around its sites with the scalars that their loads need, and the copies.

Before: the operations of the kernel still stand where they were; the slice says what of them the producer needs.
After: that is repeated in the region, one thread's code. Each group of blocks waits for its slot to be empty and is copied into it.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.analysis.specialization import Site, Specialization
from tilewright.compiler.analysis.tree import key

from .building import Builder, Values, i32_attr
from .lower_tma import block_bytes, issue_load
from .rings import Place, Rings, buffer_slot, flat, mbarrier_slot, unflat


def produce(ops: list[ir.Operation], build: Builder, plan: Specialization, rings: Rings) -> None:
    """Build the producer of `ops`, the consumers' operations, with `build`."""
    # The phase before the first one is over: all slots are empty at the start.
    _Producer(plan, rings).block(ops, build, {}, rings.start(build, 1))


class _Producer:
    def __init__(self, plan: Specialization, rings: Rings):
        self.slice = plan.slice
        self.rings = rings
        self.sites = {key(site.loop.op): site for site in plan.sites}

    def block(self, ops: list[ir.Operation], build: Builder, values: Values, places: list[Place]) -> list[Place]:
        """Repeat what the producer needs of `ops`; return the places in the rings after it."""
        for op in ops:
            if key(op) in self.slice.nests:
                places = self._for(op, build, values, places) if op.name == "scf.for" else self._if(op, build, values, places)
            elif key(op) in self.slice.ops:
                build.clone(op, values)
        return places

    def _for(self, op: ir.Operation, build: Builder, values: Values, places: list[Place]) -> list[Place]:
        loop = Loop(op)
        kept = sorted(self.slice.nests[key(op)])
        inits = [values.get(loop.inits[i], loop.inits[i]) for i in kept] + flat(places)
        bounds = [values.get(v, v) for v in (loop.lower, loop.upper, loop.step)]
        types = [v.type for v in inits]
        attributes = {"unsignedCmp": op.attributes["unsignedCmp"]} if "unsignedCmp" in op.attributes else {}
        new = build.op("scf.for", types, [*bounds, *inits], attributes, regions=1)
        block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[op.location] * (len(types) + 1))
        iv, *args = block.arguments
        inner = {**values, loop.iv: iv, **{loop.args[i]: arg for i, arg in zip(kept, args, strict=False)}}
        inside = Builder(ir.InsertionPoint(block), op.location)
        after = self.block(loop.ops[:-1], inside, inner, unflat(args[len(kept) :]))
        site = self.sites.get(key(op))
        if site is not None:
            after = self._copy(site, inside, inner, after)
        inside.op("scf.yield", [], [*(inner.get(loop.yields[i], loop.yields[i]) for i in kept), *flat(after)])
        values.update({op.results[i]: new.results[position] for position, i in enumerate(kept)})
        return unflat(list(new.results)[len(kept) :])

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

    def _copy(self, site: Site, build: Builder, values: Values, places: list[Place]) -> list[Place]:
        """Copy the blocks of one iteration into the ring's slot; return the places after it."""
        number = self.rings.index(site.loop.op)
        ring, place = self.rings.all[number], places[number]
        for group, buffers, full, empty in zip(site.groups, ring.buffers, ring.full, ring.empty, strict=True):
            loads = [site.loop.ops[block.load] for block in group.blocks]
            build.op("tilegpu.mbarrier_wait", [], [mbarrier_slot(build, empty, place.slot), place.parity])
            mbarrier = mbarrier_slot(build, full, place.slot)
            size = sum(block_bytes(load.operands[0]) for load in loads)
            build.op("tilegpu.mbarrier_expect", [], [mbarrier], {"bytes": i32_attr(size, build.loc.context)})
            for load, buffer in zip(loads, buffers, strict=True):
                operands = [values.get(v, v) for v in load.operands]
                issue_load(build, load, operands, buffer_slot(build, buffer, place.slot), mbarrier)
        return [p.next(build, ring.slots) if i == number else p for i, p in enumerate(places)]
