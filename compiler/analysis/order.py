"""Where a kernel synchronizes with its own threads or other programs, and what comes after that.

That different arguments are different arrays is relied on where nothing orders accesses; behind a barrier, or a lock that other programs
release, what a kernel loads may have been written through another argument meanwhile.
"""

from __future__ import annotations

from mlir import ir

from .loop_slice import ORDERING, orders, sees_others
from .tree import key

LOOPS = frozenset({"scf.for", "scf.while"})
_ASKS_HARDWARE = frozenset({"tile.gdc_launch", "tile.inline_asm"})


class Order:
    """The order of the operations of a kernel, given in program order. `points` are those that others may not be moved across; waiting for
    the kernels before this one is none, since what these wrote is written then."""

    def __init__(self, ops: list[ir.Operation]):
        self.positions = {key(op): i for i, op in enumerate(ops)}
        self.points = [op for op in ops if op.name != "tile.gdc_wait" and orders(op)]

    def is_behind(self, load: ir.Operation) -> bool:
        """Whether a load may run after one of the points."""
        around = loops_around(load)
        return any(self.positions[key(op)] < self.positions[key(load)] or around & loops_around(op) for op in self.points)


def loops_around(op: ir.Operation) -> set[int]:
    """Return the loops around an operation, by `tree.key`."""
    out = set()
    while op.name != "func.func":
        if op.name in LOOPS:
            out.add(key(op))
        op = op.parent.operation
    return out


def programs_may_wait(op: ir.Operation) -> bool:
    """Whether an operation may see what another program of the launch does, or ask the hardware which program this is: programs with such
    operations stay as they were launched."""
    return op.name in ORDERING or op.name in _ASKS_HARDWARE or op.name.startswith("tile.atomic_") or sees_others(op)
