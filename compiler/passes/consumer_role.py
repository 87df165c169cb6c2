"""The consumers' region of a specialized kernel: its own operations, where the loads of each site became waits for slots that are full.

Before: the region holds the kernel's operations, unchanged. After: each site waits for its blocks in front of their first use and arrives
at `empty` behind the wait for their last wgmma; loops and branches around sites carry the places in the rings.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.specialization import Site
from tilewright.compiler.analysis.tree import key

from .building import Builder
from .consumer_loop import ConsumerLoop
from .delayed_loop import DelayedLoop, turn_attributes
from .rings import Place, Rings, flat, unflat


def consume(block: ir.Block, sites: list[Site], rings: Rings) -> None:
    """Rewrite the consumers' region, whose block this is."""
    around: set[int] = set()
    for site in sites:
        op = site.loop.op
        while op.name != "tilegpu.warp_specialize":
            around.add(key(op))
            op = op.parent.operation
    first = block.operations[0].operation
    turns = max(site.turns for site in sites)
    if turns:  # The first warpgroup has the first turn.
        attributes = turn_attributes(turns, first.context) | {"tilegpu.last_warpgroup": ir.UnitAttr.get(first.context)}
        Builder.before(first).op("tilegpu.named_barrier_arrive", [], [], attributes)
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
                kind = DelayedLoop if site.delayed else ConsumerLoop
                after = kind(site, self.rings.all[number], places[number]).run()
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
