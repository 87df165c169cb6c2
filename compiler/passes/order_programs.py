"""`tile-order-programs`: programs that run longest start first.

Before: a kernel in which the number of iterations of a loop grows with a program id (the rows of causal attention, triangular products):
programs start in the order of their ids, so the longest ones would start last, and run when most of the chip is idle already.
After: that id counts down, `num_programs - 1 - program_id`. Every program runs still, and programs may run in any order; a kernel whose
programs could wait for each other (atomics, volatile or ordered accesses, calls, assembly, which may also ask the hardware which program
it is in) keeps its order.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import ORDERING, sees_others
from tilewright.compiler.analysis.tree import key

from .building import Builder, is_public, walk
from .registry import register

_OTHERS = frozenset({"tile.gdc_launch", "tile.inline_asm"})
_UNKNOWN = None
_GROWING = frozenset({"arith.addi", "arith.extsi", "arith.maxsi", "arith.minsi", "arith.trunci"})


@register("tile-order-programs", only_for=("scf.for",))
def order_programs(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for function in [o.operation for o in module.regions[0].blocks[0].operations]:
        if function.name == "func.func" and len(function.regions[0].blocks) and is_public(function):
            _order(function)


def _order(function: ir.Operation) -> None:
    ops = list(walk(function))
    if any(_may_wait(op) for op in ops):
        return
    ids: dict[int, list[ir.Operation]] = {}
    for op in ops:
        if op.name == "tile.program_id":
            ids.setdefault(ir.IntegerAttr(op.attributes["axis"]).value, []).append(op)
    loops = [op for op in ops if op.name == "scf.for"]
    for same in ids.values():
        if any(growth > 0 for growth in _growths(loops, {key(op) for op in same})):
            for op in same:
                _count_down(op)


def _may_wait(op: ir.Operation) -> bool:
    """Whether an operation may see what another program of the launch does."""
    return op.name in ORDERING or op.name in _OTHERS or op.name.startswith("tile.atomic_") or sees_others(op)


def _growths(loops: list[ir.Operation], ids: set[int]) -> list[int]:
    """Return for each loop whether its length grows (1) or shrinks (-1) with a program id; all 0 where that is not plain to see, or
    where loops disagree."""
    out = []
    for loop in loops:
        lower, upper = (_direction(v, ids) for v in list(loop.operands)[:2])
        if lower is _UNKNOWN or upper is _UNKNOWN or (lower and upper and lower == upper):
            return []
        out.append(upper or -lower)
    return [] if len({g for g in out if g}) > 1 else out


def _direction(value: ir.Value, ids: set[int]) -> int | None:
    """Return whether a scalar grows (1), shrinks (-1) or stays (0) with the program id; None if that is not plain to see."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return 0 if owner.owner.operation.name == "func.func" else _UNKNOWN
    op = owner.operation
    if key(op) in ids:
        return 1
    parts = [_direction(v, ids) for v in op.operands]
    if not any(part is _UNKNOWN or part for part in parts):
        return 0
    if _UNKNOWN in parts:
        return _UNKNOWN
    if op.name == "arith.subi":
        parts[1] = -parts[1]
    elif op.name in ("arith.muli", "arith.divsi"):
        sign = _sign(op.operands[1]) if parts[1] == 0 else 0
        if op.name == "arith.muli" and parts[0] == 0:
            sign = _sign(op.operands[0])
        return sum(parts) * sign if sign else _UNKNOWN
    elif op.name not in _GROWING:
        return _UNKNOWN
    moving = {part for part in parts if part}
    return moving.pop() if len(moving) == 1 else _UNKNOWN


def _sign(value: ir.Value) -> int:
    """Return the sign of a constant, 0 for anything else."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return 0
    attribute = owner.operation.attributes["value"]
    number = attribute.value if isinstance(attribute, ir.IntegerAttr) else 0
    return (number > 0) - (number < 0)


def _count_down(op: ir.Operation) -> None:
    build = Builder.after(op)
    id_ = op.results[0]
    programs = build.value("tile.num_programs", id_.type, [], {"axis": op.attributes["axis"]})
    last = build.binary("arith.subi", programs, build.integer(id_.type, 1))
    reversed_ = build.binary("arith.subi", last, id_)
    id_.replace_all_uses_except(reversed_, reversed_.owner.operation)
