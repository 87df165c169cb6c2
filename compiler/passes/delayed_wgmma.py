"""Rewriting of wgmmas that run an iteration late (`analysis.wgmma_loops.Delayed`), for a loop in one role or in several.

The new loop carries the left operand and the accumulator of each delayed wgmma instead of its result.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilewright.compiler.analysis.layout_rules import is_elementwise, is_transparent
from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.analysis.wgmma_loops import Delayed

from .building import Builder, i32_attr, zeros


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


def wait(loop: Loop, delayed: Delayed, result: ir.Value, block: ir.Block, live: Sequence[int]) -> ir.Operation:
    """Put what works on the result of a delayed wgmma at the end of the new body `block`, behind the wait for it, and what writes its next
    left operand, which lives in the registers that it reads, behind the wait as well. `live` are the positions of the operations in
    `block`. Return the wait."""
    arg = loop.args[delayed.carried]
    users = loop.dependents(arg, live)
    movable = all(is_elementwise(loop.names[p]) or is_transparent(loop.names[p]) for p in users)
    chain = _packing(loop, delayed) if movable else []
    build = Builder(ir.InsertionPoint(block), loop.op.location) if movable else Builder.before(loop.ops[users[0]])
    sources = [v for v in chain[0].operands if isinstance(v.type, ir.RankedTensorType)] if chain else []
    values = [result, *sources]
    made = build.op("tilegpu.wgmma_wait", [v.type for v in values], values, {"num": i32_attr(0, loop.op.context)})
    arg.replace_all_uses_with(made.results[0])
    if chain:
        for i, operand in enumerate(chain[0].operands):
            if operand in sources:
                chain[0].operands[i] = made.results[1 + sources.index(operand)]
    for op in chain + ([loop.ops[p] for p in users] if movable else []):
        block.append(op)
    return made


def _packing(loop: Loop, delayed: Delayed) -> list[ir.Operation]:
    """Return the operations, first to last, that alone make the left operand of a delayed wgmma out of what is used elsewhere too."""
    chain: list[ir.Operation] = []
    value, user = loop.ops[delayed.issue].operands[0], delayed.issue
    while True:
        position = loop.definition(value)
        if position is None:
            return chain
        op = loop.ops[position]
        uses = [loop.position(use.owner.operation) for use in value.uses]
        if uses != [user] or not (is_elementwise(op.name) or op.name == "tilegpu.convert_layout"):
            return chain
        if chain and len(op.operands) > 1:
            return chain
        chain.insert(0, op)
        tensors = [v for v in op.operands if isinstance(v.type, ir.RankedTensorType)]
        if len(tensors) != 1 or op.name not in ("tile.fp_to_fp", "tilegpu.convert_layout", "tile.bitcast"):
            return chain
        value, user = tensors[0], position
