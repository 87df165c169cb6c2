"""Where a kernel synchronizes with its own threads or other programs, and what comes after that.

That different arguments are different arrays is relied on where nothing orders accesses; behind a barrier, or a lock that other programs
release, what a kernel loads may have been written through another argument meanwhile.
"""

from __future__ import annotations

from mlir import ir

from .loop_slice import orders
from .tree import key

LOOPS = frozenset({"scf.for", "scf.while"})


class Order:
    """The order of the operations of a kernel, given in program order. `points` are those that others may not be moved across; waiting for
    the kernels before this one is none, since what these wrote is written then."""

    def __init__(self, ops: list[ir.Operation]):
        self.positions = {key(op): i for i, op in enumerate(ops)}
        self.points = [op for op in ops if op.name != "tile.gdc_wait" and orders(op)]

    def is_behind(self, load: ir.Operation) -> bool:
        """Whether a load may run after one of the points."""
        around = _loops_around(load)
        return any(self.positions[key(op)] < self.positions[key(load)] or around & _loops_around(op) for op in self.points)


def _loops_around(op: ir.Operation) -> set[int]:
    out = set()
    while op.name != "func.func":
        if op.name in LOOPS:
            out.add(key(op))
        op = op.parent.operation
    return out
