"""`tilegpu-schedule`: what becomes of each loop, written on its operations.

Before: `tilegpu-lower-dots` and `tilegpu-place-descriptors` have run; loops are as in the source.
After: nothing is rewritten. Loops have the attributes of `analysis.schedule`: whether a producer makes their copies, how many slots these
go to, how many iterations ahead of its use each load is copied, which wgmmas are issued late. `tilegpu-warp-specialize` and
`tilegpu-pipeline` carry that out. What an attribute already says stays, so a schedule that was written by hand, in part or as a whole, is
completed and kept.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.analysis.schedule import AHEAD, EARLY, LATE, ROLES, SCHEDULED, SLOTS, STAGGER, TURNS, given, say
from tilewright.compiler.analysis.specialization import Specialization, staggered
from tilewright.compiler.analysis.tree import key
from tilewright.compiler.analysis.wgmma_loops import Delayed, issues
from tilewright.compiler.multiprocessor import THREAD_REGISTERS

from .pipeline import innermost_loops, plan_loop
from .registry import register
from .warp_specialize import plan_roles


@register("tilegpu-schedule", only_for=("scf.for",))
def schedule(
    module: ir.Operation, *, num_stages: int = 3, shared_limit: int = 227 * 1024, maxnreg: int = THREAD_REGISTERS, roles: bool = False
) -> None:
    """Run on a module; see the file's docstring. `shared_limit` is the shared memory of a CTA in bytes, `maxnreg` the registers of a
    thread; `roles`: the target has registers that warps can hand to each other."""
    plan = plan_roles(module, num_stages, shared_limit, automatic=True) if roles else None
    num_warps = ir.IntegerAttr(module.attributes["tilegpu.num_warps"]).value
    done = _write_roles(plan, num_warps) if plan is not None else set()
    for op in innermost_loops(module):
        if key(op) not in done:
            if roles and given(op, ROLES) is None:
                say(op, ROLES, 0)
            _write_copies(Loop(op), num_stages, num_warps, shared_limit, maxnreg)
    module.attributes[SCHEDULED] = ir.UnitAttr.get(module.context)


def _write_roles(plan: Specialization, num_warps: int) -> set[int]:
    """Write down the roles of a kernel; return the loops that have them by `tree.key`."""
    for site in plan.sites:
        op = site.loop.op
        say(op, ROLES, 1)
        say(op, SLOTS, plan.slots)
        say(op, TURNS, site.turns)
        if site.in_flight:
            say(op, STAGGER, staggered(site, plan.slots, num_warps))
        _write_late(site.loop, site.delayed)
    return {key(site.loop.op) for site in plan.sites}


def _write_copies(loop: Loop, num_stages: int, num_warps: int, shared_limit: int, maxnreg: int) -> None:
    """Write down the copies of a loop in one role."""
    plan = plan_loop(loop, num_stages, num_warps, shared_limit, maxnreg)
    if plan is None:
        return
    say(loop.op, SLOTS, plan.slots)
    copied = {c.position for c in plan.copies}
    for position, op in enumerate(loop.ops):
        if loop.names[position] in ("tile.load", "tile.descriptor_load") and isinstance(op.results[0].type, ir.RankedTensorType):
            say(op, AHEAD, plan.slots - 1 - plan.lag if position in copied else 0)
    _write_late(loop, plan.delayed)
    if plan.early is not None:
        say(loop.ops[plan.early], LATE, EARLY)


def _write_late(loop: Loop, delayed: list[Delayed]) -> None:
    late = {d.issue for d in delayed}
    for position in issues(loop):
        say(loop.ops[position], LATE, int(position in late))
