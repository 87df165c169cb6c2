"""Rewriting of wgmmas that run an iteration late (`analysis.wgmma_loops.Delayed`), for a loop in one role or in several.

The new loop carries the left operand and the accumulator of each delayed wgmma instead of its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from tilewright.compiler.analysis.layout_rules import is_elementwise, is_transparent
from tilewright.compiler.analysis.loop_slice import Loop, is_cheap
from tilewright.compiler.analysis.wgmma_loops import Delayed

from .building import Builder, i32_attr, zeros

_NE = 1
_SMALL = 8


def initial_operands(build: Builder, loop: Loop, delayed: Delayed) -> list[ir.Value]:
    """Return the left operand and the accumulator in the first iteration."""
    left = loop.ops[delayed.issue].operands[0]
    return [zeros(build, left.type), loop.inits[delayed.carried]]


def next_operands(loop: Loop, delayed: Delayed) -> list[ir.Value]:
    """Return the left operand and the accumulator that an iteration leaves to the next one."""
    issue = loop.ops[delayed.issue]
    return [issue.operands[0], issue.operands[2]]


def issue(
    build: Builder, loop: Loop, delayed: Delayed, right: ir.Value, left: ir.Value, accumulator: ir.Value, use_acc: ir.Value | None = None
) -> ir.Value:
    """Issue the wgmma of the iteration before, on the operands that it left; return its pending result. Where `use_acc` (i1) is false
    it ignores the accumulator."""
    original = loop.ops[delayed.issue]
    attributes = {name: original.attributes[name] for name in original.attributes}
    optional = [] if use_acc is None else [use_acc]
    return build.value("tilegpu.wgmma", accumulator.type, [left, right, accumulator, *optional], attributes)


def last_right_operand(build: Builder, loop: Loop, delayed: Delayed, slot: ir.Value) -> ir.Value:
    """Return the right operand behind the loop, where it lies in `slot`."""
    for view in delayed.views:
        op = loop.ops[view].clone(ip=build.ip)
        op.operands[0] = slot
        slot = op.results[0]
    return slot


def wait(loop: Loop, delayed: Delayed, result: ir.Value, block: ir.Block, live: Sequence[int], behind_branch: bool = False) -> ir.Operation:
    """Wait for a delayed wgmma at the end of the new body `block`; put behind the wait what works on its result, and what only maps
    elements to make its next left operand, which lives in the registers that it reads (exponentials and their packing, and what depends on
    them). `live` are the positions of the operations in `block`; `behind_branch`: what is to run before the wait is in a branch. Return the
    wait."""
    arg = loop.args[delayed.carried]
    users = loop.dependents(arg, live)
    movable = all(is_elementwise(loop.names[p]) or is_transparent(loop.names[p]) for p in users)
    build = Builder(ir.InsertionPoint(block), loop.op.location) if movable else Builder.before(loop.ops[users[0]])
    maps = _maps(loop, delayed, live) if movable else []
    first = loop.ops[maps[0]] if maps else None
    values = [result] if first is None else [result, first.operands[0]]
    made = build.op("tilegpu.wgmma_wait", [v.type for v in values], values, {"num": i32_attr(0, loop.op.context)})
    if behind_branch:
        made.attributes["tilegpu.behind_branch"] = ir.UnitAttr.get(loop.op.context)
    arg.replace_all_uses_with(made.results[0])
    if first is not None:
        first.operands[0] = made.results[1]
    for p in sorted({*maps, *users}) if movable else []:
        block.append(loop.ops[p])
    return made


def always(build: Builder) -> ir.Value:
    """Return an i1 that is true and that neither LLVM nor ptxas knows to be: the chip has multiprocessors."""
    context = build.loc.context
    text, constraints = (ir.StringAttr.get(t, context) for t in ("mov.u32 $0, %nsmid;", "=r"))
    attributes = {"asm_string": text, "constraints": constraints, "pure": ir.UnitAttr.get(context), "pack": i32_attr(1, context)}
    count = build.value("tile.inline_asm", ir.IntegerType.get_signless(32, context), [], attributes)
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), _NE)
    return build.value("arith.cmpi", ir.IntegerType.get_signless(1, context), [count, build.i32(0)], {"predicate": predicate})


def keep_reductions_ahead(loop: Loop, delayed: Delayed, live: Sequence[int], condition: ir.Value) -> bool:
    """Put the reductions that the left operand of a delayed wgmma depends on, and what they are made of, into a branch on `condition`,
    which is `always` true. ptxas does not move the wait for the wgmma, which comes behind, up past the end of a branch: the reductions run
    while the wgmma does. Return whether that was done: not where more than the reductions' results would have to leave the branch."""
    maps = _maps(loop, delayed, live)
    if not maps:
        return False
    among = set(live)
    # What is small beside the reductions' operands crosses the branch in a few registers.
    size = _size(loop.ops[maps[0]].operands[0]) // _SMALL
    cut: list[ir.Value] = []
    pending, seen = list(loop.ops[maps[0]].operands), set()
    while pending:
        value = pending.pop()
        position = loop.definition(value)
        if position is None or position in seen or position not in among:
            continue
        seen.add(position)
        if _size(value) < size and any(loop.names[p] == "tile.reduce" for p in _slice(loop, [value], among)):
            cut.append(value)
        else:
            pending += loop.ops[position].operands
    needed = _slice(loop, cut, among)
    inside = sorted({*needed, *_small_dependents(loop, needed, live, size)})
    made = [r for p in inside for r in loop.ops[p].results]
    leaving = [v for v in made if any(loop.position(u.owner.operation) not in inside for u in v.uses)]
    if not cut or any(_size(v) >= size for v in leaving) or not all(_may_move(loop.names[p]) for p in inside):
        return False
    build = Builder.before(loop.ops[needed[-1]])
    branch = build.op("scf.if", [v.type for v in leaving], [condition], regions=2)
    for value, result in zip(leaving, branch.results, strict=True):
        for use in list(value.uses):
            if loop.position(use.owner.operation) not in inside:
                use.owner.operation.operands[use.operand_number] = result
        loop.yields = [result if v == value else v for v in loop.yields]
    taken, other = (region.blocks.append() for region in branch.regions)
    for p in inside:
        taken.append(loop.ops[p])
    Builder(ir.InsertionPoint(taken), build.loc).op("scf.yield", [], leaving)
    nothing = Builder(ir.InsertionPoint(other), build.loc)
    nothing.op("scf.yield", [], [zeros(nothing, v.type) for v in leaving])
    return True


def _slice(loop: Loop, values: list[ir.Value], among: set[int]) -> list[int]:
    """Return the positions `among` these, ascending, of what makes some values in one iteration."""
    found: set[int] = set()
    pending = list(values)
    while pending:
        position = loop.definition(pending.pop())
        if position is not None and position in among and position not in found:
            found.add(position)
            pending += loop.ops[position].operands
    return sorted(found)


def _small_dependents(loop: Loop, inside: list[int], live: Sequence[int], size: int) -> set[int]:
    """Return the positions of what can be made of the reductions' results alone and is small itself."""
    found = set(inside)
    for p in live:
        sources = {q for v in loop.ops[p].operands if (q := loop.definition(v)) is not None}
        small = all(_size(v) < size for v in (*loop.ops[p].operands, *loop.ops[p].results))
        if small and sources and sources <= found and is_cheap(loop.names[p]):
            found.add(p)
    return found


def _size(value: ir.Value) -> int:
    return prod(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else 1


def _may_move(name: str) -> bool:
    return is_cheap(name) or name in ("tile.reduce", "tilegpu.convert_layout")


def _maps(loop: Loop, delayed: Delayed, live: Sequence[int]) -> list[int]:
    """Return the positions of the operations that map elements, one by one, to make the left operand of a delayed wgmma, and of what else
    depends on them, if nothing of that has effects."""
    first, value = None, loop.ops[delayed.issue].operands[0]
    while (position := loop.definition(value)) is not None:
        op = loop.ops[position]
        if len(op.operands) != 1 or not (is_elementwise(op.name) or op.name == "tilegpu.convert_layout"):
            break
        first, value = position, op.operands[0]
    if first is None:
        return []
    found = [first, *loop.dependents(loop.ops[first].results[0], live)]
    return found if all(_may_move(loop.names[p]) for p in found) else []
