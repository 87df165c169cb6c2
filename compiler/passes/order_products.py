"""`tilegpu-order-products`: products that this iteration needs come before those that it only passes on.

Before: each `tilegpu.wgmma` is followed by its wait (`tilegpu-lower-dots`). A loop may hold products whose results only the next iteration
adds to (dK and dV of attention's derivative), in front of others whose results it works on next (dP, dQ).
After: of two such neighbours that do not depend on each other the one that is worked on comes first. Groups of wgmmas end in the order of
their issue, so that work runs while the other product does.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import is_cheap

from .building import collect
from .registry import register

_WGMMA, _WAIT = "tilegpu.wgmma", "tilegpu.wgmma_wait"
#: What may stand between the two and stays where it is, in front of the first.
_PASSED = frozenset({"tilegpu.view", "tilegpu.fence_async", "tile.descriptor_load", "tilegpu.local_alloc", "tile.load"})


@register("tilegpu-order-products", only_for=("scf.for",))
def order_products(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for loop in collect(module, "scf.for"):
        ops = [o.operation for o in loop.regions[0].blocks[0].operations]
        for position in reversed([p for p, op in enumerate(ops) if op.name == _WGMMA]):
            _defer(ops, position)


def _defer(ops: list[ir.Operation], first: int) -> None:
    """Move the wgmma at the position `first`, with its wait, behind the next one, if that is the better order."""
    issue = ops[first]
    wait = _wait_of(issue)
    if wait is None or wait != ops[first + 1] or not _is_passed_on(wait, ops[-1]):
        return
    made = {issue.results[0], wait.results[0]}
    for op in ops[first + 2 :]:
        if any(v in made for v in op.operands):
            return
        if op.name == _WGMMA:
            other = _wait_of(op)
            if other is not None and not _is_passed_on(other, ops[-1]):
                wait.move_after(other)
                issue.move_after(other)
            return
        if not (is_cheap(op.name) or op.name in _PASSED):
            return


def _wait_of(issue: ir.Operation) -> ir.Operation | None:
    uses = [use.owner.operation for use in issue.results[0].uses]
    return uses[0] if len(uses) == 1 and uses[0].name == _WAIT and len(uses[0].results) == 1 else None


def _is_passed_on(wait: ir.Operation, end: ir.Operation) -> bool:
    """Whether the end of the loop's body alone uses what was waited for."""
    uses = list(wait.results[0].uses)
    return len(uses) == 1 and uses[0].owner.operation == end
