"""The consumers' region of a specialized kernel: its own operations, where the loads of each site became waits for slots that are full.

Before: the region holds the kernel's operations, unchanged. After: each site waits for its blocks in front of their first use and arrives
at `empty` behind the wait for their last wgmma; held blocks are waited for where they were loaded, and released behind the last site that
reads them; loops and branches around sites carry the places in the rings.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.specialization import Held, Specialization
from tilewright.compiler.analysis.tree import key

from .building import Builder, i32_attr
from .consumer_loop import ConsumerLoop
from .delayed_loop import DelayedLoop, turn_attributes
from .rings import Place, Ring, Rings, buffer_slot, flat, mbarrier_slot, unflat


def consume(block: ir.Block, plan: Specialization, rings: Rings) -> None:
    """Rewrite the consumers' region, whose block this is."""
    around: set[int] = set()
    for site in plan.sites:
        op = site.loop.op
        while op.name != "tilegpu.warp_specialize":
            around.add(key(op))
            op = op.parent.operation
    first = block.operations[0].operation
    turns = max(site.turns for site in plan.sites)
    if turns:  # The first warpgroup has the first turn.
        attributes = turn_attributes(turns, first.context) | {"tilegpu.last_warpgroup": ir.UnitAttr.get(first.context)}
        Builder.before(first).op("tilegpu.named_barrier_arrive", [], [], attributes)
    _Consumer(plan, rings, around).block(block, rings.start(Builder.before(first), 0))


class _Consumer:
    def __init__(self, plan: Specialization, rings: Rings, around: set[int]):
        self.sites = {key(site.loop.op): site for site in plan.sites}
        #: Held blocks with the numbers of their rings, by their loads, and by the operations behind which they are released.
        self.held = {key(block.load): (block, rings.index(block.load)) for block in plan.held}
        self.releases: dict[int, list[int]] = {}
        for block, number in self.held.values():
            self.releases.setdefault(key(block.last), []).append(number)
        self.rings = rings
        self.around = around

    def block(self, block: ir.Block, places: list[Place]) -> list[Place]:
        """Rewrite the sites inside `block`; return the places in the rings after it."""
        for op in [o.operation for o in block.operations]:
            if key(op) in self.held:
                held, number = self.held[key(op)]
                self._wait_for(held, self.rings.all[number], places[number])
                continue
            if key(op) not in self.around:
                continue
            released, behind = self.releases.get(key(op), []), Builder.after(op)
            site = self.sites.get(key(op))
            if site is not None:
                number = self.rings.index(op)
                kind = DelayedLoop if site.delayed else ConsumerLoop
                after = kind(site, self.rings.all[number], places[number]).run()
                places = [after if i == number else p for i, p in enumerate(places)]
            else:
                places = self._nest(op, places)
            for number in released:
                places = self._release(behind, number, places)
        return places

    def _wait_for(self, held: Held, ring: Ring, place: Place) -> None:
        """Wait for a block where it was loaded."""
        build = Builder.before(held.load)
        build.op("tilegpu.mbarrier_wait", [], [mbarrier_slot(build, ring.full[0], place.slot), place.parity])
        held.alloc.results[0].replace_all_uses_with(buffer_slot(build, ring.buffers[0][0], place.slot))
        for op in (held.fence, held.alloc, held.load):
            if op is not None:
                op.erase()

    def _release(self, build: Builder, number: int, places: list[Place]) -> list[Place]:
        """Give the slot of a held block back to the producer; return the places behind that."""
        ring, place = self.rings.all[number], places[number]
        if not ring.empty:
            return places
        attributes = {"count": i32_attr(1, build.loc.context), "tilegpu.each_warpgroup": ir.UnitAttr.get(build.loc.context)}
        build.op("tilegpu.mbarrier_arrive", [], [mbarrier_slot(build, ring.empty[0], place.slot)], attributes)
        return [p.next(build, ring.slots) if i == number else p for i, p in enumerate(places)]

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
