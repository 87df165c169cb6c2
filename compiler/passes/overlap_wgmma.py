"""`tilegpu-overlap-wgmma`: wgmmas stay in flight while other work goes on.

Before: every `tilegpu.wgmma` is followed by a `tilegpu.wgmma_wait` for all groups; `tilegpu-pipeline` has run.
After:
- between wgmmas that only add to each other's accumulators there is no wait;
- an accumulator that a loop merely carries on is pending across iterations: behind the first wgmma of the body stands a wait that leaves just
  that one in flight, so that what the iteration before had issued, and read, is done; the last one is waited for behind the loop;
- every other wait stands in front of the first use of its value.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.tree import key

from .building import Builder, collect, defining, i32_attr
from .registry import register


@register("tilegpu-overlap-wgmma")
def overlap_wgmma(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    waits = collect(module, "tilegpu.wgmma_wait")
    if not waits:
        return
    waits = [op for op in waits if not _forwarded(op)]
    loops = {key(op.parent.operation): op.parent.operation for op in waits if op.parent.name == "scf.for"}
    for loop in loops.values():
        waits = _carry_pending(loop, waits)
    for op in waits:
        _sink(op)


def _forwarded(wait: ir.Operation) -> bool:
    """Drop a wait whose value is only accumulated further by wgmmas of the same block; return whether it was."""
    uses = list(wait.results[0].uses)
    for use in uses:
        user = use.owner.operation
        if user.name != "tilegpu.wgmma" or user.operands[2] != wait.results[0] or user.block != wait.block:
            return False
    if not uses:
        return False
    wait.results[0].replace_all_uses_with(wait.operands[0])
    wait.erase()
    return True


def _carry_pending(loop: ir.Operation, waits: list[ir.Operation]) -> list[ir.Operation]:
    """Let the accumulators of a loop be pending across iterations where that is safe; return the waits that are left."""
    block = loop.regions[0].blocks[0]
    ops = [op.operation for op in block.operations]
    position = {key(op): i for i, op in enumerate(ops)}
    first = next(op for op in ops if op.name == "tilegpu.wgmma")
    terminator = ops[-1]
    carried: list[tuple[int, ir.Operation]] = []
    for wait in waits:
        if key(wait) not in position:
            continue
        uses = list(wait.results[0].uses)
        if len(uses) != 1 or uses[0].owner.operation != terminator:
            continue
        index = uses[0].operand_number
        issue = defining(wait.operands[0])
        if _reads_safely(issue, loop) and _argument_waits(block.arguments[index + 1], issue, first, position, loop):
            carried.append((index, wait))
    if not carried:
        return waits
    context = loop.context
    pending_args = []
    for index, wait in carried:
        arg = block.arguments[index + 1]
        if _chain_head(defining(wait.operands[0])) != first:
            pending_args.append(arg)
        wait.results[0].replace_all_uses_with(wait.operands[0])
    build = Builder.after(first)
    done = build.op("tilegpu.wgmma_wait", [a.type for a in pending_args], pending_args, {"num": i32_attr(1, context)})
    for arg, result in zip(pending_args, done.results, strict=True):
        arg.replace_all_uses_except(result, done)
    after = Builder.after(loop)
    results = [loop.results[index] for index, _ in carried]
    drained = after.op("tilegpu.wgmma_wait", [r.type for r in results], results, {"num": i32_attr(0, context)})
    for old, new in zip(results, drained.results, strict=True):
        old.replace_all_uses_except(new, drained)
    gone = [wait for _, wait in carried]
    left = [op for op in waits if op not in gone]
    for wait in gone:
        wait.erase()
    return left


def _chain_head(issue: ir.Operation) -> ir.Operation:
    """Return the first wgmma of those that add to one accumulator without a wait between."""
    while True:
        source = defining(issue.operands[2])
        if source is None or source.name != "tilegpu.wgmma":
            return issue
        issue = source


def _reads_safely(issue: ir.Operation, loop: ir.Operation) -> bool:
    """Whether nothing in the loop overwrites the operands of a chain of wgmmas before the wait in the next iteration: buffers come from
    outside, as constants of the loop or as rings of slots."""
    while True:
        for operand in list(issue.operands)[:2]:
            source = defining(operand)
            while source is not None and source.name in ("tilegpu.view", "tilegpu.slot"):
                source = defining(source.operands[0])
            if source is not None and source.name == "tilegpu.local_alloc" and source.parent.operation == loop:
                return False
        source = defining(issue.operands[2])
        if source is None or source.name != "tilegpu.wgmma":
            return True
        issue = source


def _argument_waits(arg: ir.Value, issue: ir.Operation, first: ir.Operation, position: dict[int, int], loop: ir.Operation) -> bool:
    """Whether a carried accumulator is not touched before the wait behind `first`, other than as the accumulator of `first` itself."""
    if _chain_head(issue) == first:
        return first.operands[2] == arg and sum(1 for _ in arg.uses) == 1
    for use in arg.uses:
        user = use.owner.operation
        while key(user) not in position:
            user = user.parent.operation
            if user == loop:
                return False
        if position[key(user)] <= position[key(first)]:
            return False
    return True


def _sink(wait: ir.Operation) -> None:
    """Move a wait in front of the first use of its value; groups issued on the way may stay in flight."""
    uses = [use.owner.operation for use in wait.results[0].uses]
    block = wait.block
    ops = [op.operation for op in block.operations]
    position = {key(op): i for i, op in enumerate(ops)}
    targets = []
    for user in uses:
        while key(user) not in position:
            user = user.parent.operation
        targets.append(position[key(user)])
    start = position[key(wait)]
    stop = min(targets, default=start + 1)
    passed = ops[start + 1 : stop]
    if not passed or any(op.regions and op.name.startswith("scf.") for op in passed):
        return
    wait.move_before(ops[stop])
    issued = sum(op.name == "tilegpu.wgmma" for op in passed)
    wait.attributes["num"] = i32_attr(issued, wait.context)
