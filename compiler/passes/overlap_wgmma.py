"""`tilegpu-overlap-wgmma`: wgmmas stay in flight while other work goes on.

Before: every `tilegpu.wgmma` is followed by a `tilegpu.wgmma_wait` for all groups; `tilegpu-pipeline` has run.
After:
- between wgmmas that only add to each other's accumulators there is no wait;
- accumulators that a loop merely adds to are pending across iterations: where the first wait stood is one that leaves this iteration's
  wgmmas in flight, so that what the iteration before issued, and read, is done; the last ones are waited for behind the loop;
- every other wait stands in front of the first use of its value, or is one with a later wait that covers it.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.analysis.tree import key
from tilewright.compiler.analysis.wgmma_loops import carries_accumulators, issues

from .building import Builder, collect, defining, i32_attr
from .registry import register


@register("tilegpu-overlap-wgmma", only_for=("tile.dot", "tilegpu.wgmma"))
def overlap_wgmma(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    waits = collect(module, "tilegpu.wgmma_wait")
    if not waits:
        return
    waits = [op for op in waits if not _forwarded(op)]
    loops = {key(op.parent.operation): op.parent.operation for op in waits if op.parent.name == "scf.for"}
    for loop in loops.values():
        waits = _carry_pending(loop, waits)
    # The last ones first: an earlier one then meets them where they came to stand.
    for op in reversed(waits):
        _sink(op)


def _forwarded(wait: ir.Operation) -> bool:
    """Drop a wait whose value is only accumulated further by wgmmas of the same block; return whether it was."""
    if len(wait.results) != 1:
        return False
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


def _carry_pending(op: ir.Operation, waits: list[ir.Operation]) -> list[ir.Operation]:
    """Let the accumulators of a loop be pending across iterations if nothing but wgmmas touches them; return the waits that are left."""
    loop = Loop(op)
    if not carries_accumulators(loop) or not all(_reads_safely(loop.ops[p], op) for p in issues(loop)):
        return waits
    own = [p for p, name in enumerate(loop.names) if name == "tilegpu.wgmma_wait"]
    first = loop.ops[own[0]]
    # At most the wgmmas of this iteration stay in flight: what the one before issued is done, and so are its reads.
    issued = sum(p < own[0] for p in issues(loop))
    Builder.before(first).op("tilegpu.wgmma_wait", [], [], {"num": i32_attr(issued, op.context)})
    results = []
    for position in own:
        wait = loop.ops[position]
        index = next(iter(wait.results[0].uses)).operand_number
        results.append(op.results[index])
        wait.results[0].replace_all_uses_with(wait.operands[0])
    drained = Builder.after(op).op("tilegpu.wgmma_wait", [r.type for r in results], results, {"num": i32_attr(0, op.context)})
    for old, new in zip(results, drained.results, strict=True):
        old.replace_all_uses_except(new, drained)
    gone = [loop.ops[p] for p in own]
    left = [wait for wait in waits if wait not in gone]
    for wait in gone:
        wait.erase()
    return left


def _reads_safely(issue: ir.Operation, loop: ir.Operation) -> bool:
    """Whether nothing in the loop overwrites the operands of a wgmma before the wait in the next iteration: buffers come from outside, as
    constants of the loop or as rings of slots."""
    for operand in list(issue.operands)[:2]:
        source = defining(operand)
        while source is not None and source.name in ("tilegpu.view", "tilegpu.slot"):
            source = defining(source.operands[0])
        if source is not None and source.name == "tilegpu.local_alloc" and source.parent.operation == loop:
            return False
    return True


def _sink(wait: ir.Operation) -> None:
    """Move a wait in front of the first use of its value; groups issued on the way may stay in flight. A wait on the way that covers it
    takes its value over."""
    uses = [use.owner.operation for result in wait.results for use in result.uses]
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
    # An arrival says that what was waited for is over.
    stop = next((p for p in range(start + 1, stop) if ops[p].name == "tilegpu.mbarrier_arrive"), stop)
    in_flight = _number(wait)
    for passed in ops[start + 1 : stop]:
        if passed.regions and passed.name.startswith("scf."):
            return
        in_flight += passed.name == "tilegpu.wgmma"
        if passed.name == "tilegpu.wgmma_wait" and len(passed.results) and _number(passed) <= in_flight:
            _merge(wait, passed)
            return
    if stop > start + 1:
        wait.move_before(ops[stop])
        wait.attributes["num"] = i32_attr(in_flight, wait.context)


def _number(wait: ir.Operation) -> int:
    return ir.IntegerAttr(wait.attributes["num"]).value


def _merge(wait: ir.Operation, into: ir.Operation) -> None:
    """Let a later wait, which leaves no more in flight, pass on the values of both."""
    values = [*into.operands, *wait.operands]
    merged = Builder.before(into).op("tilegpu.wgmma_wait", [v.type for v in values], values, {"num": into.attributes["num"]})
    for old, new in zip([*into.results, *wait.results], merged.results, strict=True):
        old.replace_all_uses_with(new)
    into.erase()
    wait.erase()
