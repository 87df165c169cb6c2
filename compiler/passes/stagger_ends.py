"""`tilegpu-stagger-ends`: at the end of a kernel, warpgroups compute one after the other, so that one stores while the next computes.

Before: `tilegpu-overlap-wgmma` and `tilegpu-defer-stores` have run. The consumers have one loop of products that leaves wgmmas in flight,
directly or in a loop over tiles; it says how many of its last iterations to stagger (`tilegpu.stagger`), fewer than its ring has slots:

    for tile …:                            arrive at the barrier of the first warpgroup (the last one does)
        for k …:                           for tile …:
            wait for blocks                    for k …:
            wgmma                                  if the tile is the last one and so many blocks are left: wait for one's turn
            wgmma_wait num = 1, release            wait for blocks; wgmma; wgmma_wait num = 1, release
        wgmma_wait num = 0, release            if the tile is the last one: let the next warpgroup have its turn
        …                                      wgmma_wait num = 0, release; …

After: as on the right. The blocks that are left lie in the ring, all at the same time, so they need not be released by the warpgroups that
wait. The tensor cores have work all the time: each warpgroup in turn has them for itself. Without this, all end together, and nothing is
left to do while the whole tile is converted and stored: TMA stores 32 bytes a cycle, 64 KiB in some 2,000 cycles.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.analysis.schedule import SLOTS, STAGGER, given

from .building import Builder, collect
from .delayed_loop import turn_attributes
from .registry import register
from .rings import SGE, SGT, compare

_WARPS_PER_GROUP = 4
_WAIT, _SYNC, _ARRIVE = "tilegpu.wgmma_wait", "tilegpu.named_barrier_sync", "tilegpu.named_barrier_arrive"


@register("tilegpu-stagger-ends", only_for=("tile.dot", "tilegpu.wgmma"))
def stagger_ends(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for roles in collect(module, "tilegpu.warp_specialize"):
        groups = ir.DenseI32ArrayAttr(roles.attributes["warps"])[0] // _WARPS_PER_GROUP
        loops = [op for op in collect(roles, "scf.for") if _leaves_in_flight(op)]
        turns = any("tilegpu.turns" in op.attributes for op in collect(roles, _SYNC, _ARRIVE))
        if len(loops) != 1 or groups < 2 or turns:
            continue
        products = Loop(loops[0])
        blocks, slots = given(products.op, STAGGER), given(products.op, SLOTS)
        around = _around(products.op, roles)
        if blocks and slots and blocks < slots and len(around) < 2:
            _stagger(roles, products, Loop(around[0]) if around else None, blocks, groups)


def _leaves_in_flight(loop: ir.Operation) -> bool:
    """Whether a loop holds wgmmas and leaves them in flight from one iteration to the next."""
    ops = [(o.operation.name, len(o.operation.results)) for o in loop.regions[0].blocks[0].operations]
    return ("tilegpu.wgmma", 1) in ops and (_WAIT, 0) in ops


def _around(op: ir.Operation, roles: ir.Operation) -> list[ir.Operation]:
    """Return the loops around a loop of the consumers."""
    out = []
    while (op := op.parent.operation) != roles:
        if op.name != "scf.if":
            out.append(op)
    return out


def _stagger(roles: ir.Operation, products: Loop, tiles: Loop | None, blocks: int, groups: int) -> None:
    attributes = turn_attributes(groups, roles.context)
    first = roles.regions[0].blocks[0].operations[0].operation
    Builder.before(first).op(_ARRIVE, [], [], {**attributes, "tilegpu.last_warpgroup": ir.UnitAttr.get(roles.context)})

    build = Builder.before(products.op)
    left = build.binary("arith.muli", products.step, build.integer(products.step.type, blocks))
    start = build.binary("arith.subi", products.upper, left)
    ends = compare(build, SGE, start, products.lower)
    if tiles is not None:
        is_last = compare(build, SGE, build.binary("arith.addi", tiles.iv, tiles.step), tiles.upper)
        ends = build.binary("arith.andi", ends, is_last)
    at = build.value("arith.select", start.type, [ends, start, products.upper])
    behind = build.binary("arith.addi", at, products.step)
    inside = Builder.before(products.ops[0])
    due = inside.binary("arith.andi", compare(inside, SGE, products.iv, at), compare(inside, SGT, behind, products.iv))
    _meet(inside, _SYNC, attributes, due)
    _meet(Builder.after(products.op), _ARRIVE, attributes, ends)


def _meet(build: Builder, name: str, attributes: dict[str, ir.Attribute], condition: ir.Value) -> None:
    """Build the wait or the arrival at a named barrier, under a condition."""
    branch = build.op("scf.if", [], [condition], regions=2)
    inside = Builder(ir.InsertionPoint(branch.regions[0].blocks.append()), build.loc)
    inside.op(name, [], [], attributes)
    inside.op("scf.yield", [], [])
