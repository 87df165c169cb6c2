"""The schedule of a loop, as attributes of its operations: what `tilegpu-schedule` decides, and the passes behind it carry out.

| attribute | on | says |
|---|---|---|
| `tilegpu.roles` | a loop | its copies are made by a producer of their own |
| `tilegpu.slots` | a loop | slots of the rings that its copies go to |
| `tilegpu.turns` | a loop with roles | warpgroups that issue their products one after the other; 0: whenever they like |
| `tilegpu.stagger` | a loop with roles | last iterations of the last tile that warpgroups do one after the other; 0: together |
| `tilegpu.ahead` | a load | how many iterations before its use it is copied; 0: it is not copied, but loaded where it stands |
| `tilegpu.late` | a wgmma | by how many iterations it is issued late: 0 or 1, or -1, an iteration early |

All are `i32`. A pass that finds one absent decides for itself.
"""

from __future__ import annotations

from mlir import ir

#: Attribute (unit) of a module whose loops are scheduled, but not rewritten yet.
SCHEDULED = "tilegpu.scheduled"
EARLY = -1
"""What `tilegpu.late` says of a product that is issued an iteration early."""
ROLES, SLOTS, TURNS, STAGGER = "tilegpu.roles", "tilegpu.slots", "tilegpu.turns", "tilegpu.stagger"
AHEAD, LATE = "tilegpu.ahead", "tilegpu.late"


def given(op: ir.Operation, name: str) -> int | None:
    """Return what the schedule says, or None."""
    return ir.IntegerAttr(op.attributes[name]).value if name in op.attributes else None


def say(op: ir.Operation, name: str, value: int) -> None:
    """Write it down."""
    op.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32, op.context), value)
