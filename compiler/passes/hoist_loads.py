"""`tile-hoist-loads`: what every program loads is loaded once by a CTA that runs many.

Before: a loop over programs (`tile-loop-programs`), addresses that do not depend on the program in front of it
(`loop-invariant-code-motion`).
After: the loads at such addresses stand in front of the loop as well, and their values stay in registers: weights and biases of norms. A
load stays if the program may have written its memory before, or where something orders accesses. The loop runs at least once, so nothing is
loaded that would not have been.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import GLOBAL_WRITES, PROGRAMS, Loop, base_argument, orders

from .building import collect, walk
from .registry import register


@register("tile-hoist-loads", only_for=("tile.program_id",))
def hoist_loads(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for op in collect(module, "scf.for"):
        if PROGRAMS in op.attributes and not any(orders(inner) for inner in walk(op)):
            loop = Loop(op)
            for load in [o for o, name in zip(loop.ops, loop.names, strict=True) if name == "tile.load" and _is_common(loop, o)]:
                load.move_before(op)


def _is_common(loop: Loop, load: ir.Operation) -> bool:
    """Whether all programs load the same."""
    if any(loop.definition(v) is not None or v == loop.iv or loop.carried_index(v) is not None for v in load.operands):
        return False
    base, place = base_argument(load.operands[0]), loop.position(load)
    written = (base_argument(op.operands[0]) for op in walk(loop.op) if op.name in GLOBAL_WRITES and loop.position(op) < place)
    return base is not None and all(other is not None and other != base for other in written)
