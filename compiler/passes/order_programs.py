"""`tile-order-programs`: programs that run longest start first.

Before: a kernel in which the number of iterations of a loop grows or shrinks with a program id (the rows of causal attention, triangular
products). Programs start in the order of their numbers, the first id counting fastest, so that long ones come late, and run when most of
the chip is idle already: with 32 heads of 32 blocks of rows, causal attention takes 13% longer than its work.
After: if the program has that id only, it counts from the long end: `num_programs - 1 - program_id` where lengths grow. If it has others,
programs are numbered anew. The n programs along the id (x) of h of the others (r) form a group; groups start one after the other, the
longest programs of a group first:

    with g, i = divmod(number of the program, n * h):   x = i / h, or n - 1 - i / h where lengths grow;   r = g * h + i mod h

A group is of 256 programs or more, which is about what runs on a chip at a time: lengths fall slowly then from one to the next, and what
the programs of a group share (keys and values of h heads) is small enough for L2. Every program still runs, and programs may run in any
order; a kernel whose programs could wait for each other (atomics, volatile or ordered accesses, calls, assembly, which may also ask the
hardware which program it is in) keeps its order.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.order import programs_may_wait
from tilewright.compiler.analysis.tree import key

from .building import Builder, i32_attr, is_public, walk
from .registry import register

_AXES = range(3)
_UNKNOWN = None
_GROUP = 256
_GROWING = frozenset({"arith.addi", "arith.extsi", "arith.maxsi", "arith.minsi", "arith.trunci"})


@register("tile-order-programs", only_for=("scf.for",))
def order_programs(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for function in [o.operation for o in module.regions[0].blocks[0].operations]:
        if function.name == "func.func" and len(function.regions[0].blocks) and is_public(function):
            _order(function)


def _order(function: ir.Operation) -> None:
    ops = list(walk(function))
    if any(programs_may_wait(op) for op in ops):
        return
    ids: dict[int, list[ir.Operation]] = {}
    for op in ops:
        if op.name == "tile.program_id":
            ids.setdefault(ir.IntegerAttr(op.attributes["axis"]).value, []).append(op)
    loops = [op for op in ops if op.name == "scf.for"]
    for axis, same in ids.items():
        growth = next((g for g in _growths(loops, {key(op) for op in same}) if g), 0)
        if growth and len(ids) > 1:
            _renumber(function, ids, axis, growth > 0)
            return
        if growth > 0:
            for op in same:
                _count_down(op)


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


def _renumber(function: ir.Operation, ids: dict[int, list[ir.Operation]], axis: int, grows: bool) -> None:
    """Number programs anew, those with long loops along `axis` first, in groups."""
    build = Builder(ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), function.location)
    i32 = ids[axis][0].results[0].type

    def launched(name: str, axis: int) -> ir.Value:
        return build.value(name, i32, [], {"axis": i32_attr(axis, function.context)})

    def divmod_(a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
        quotient = build.binary("arith.divui", a, b)
        return quotient, build.binary("arith.subi", a, build.binary("arith.muli", quotient, b))

    id0, id1, id2 = (launched("tile.program_id", i) for i in _AXES)
    sizes = [launched("tile.num_programs", i) for i in _AXES]
    plane = build.binary("arith.addi", build.binary("arith.muli", id2, sizes[1]), id1)
    number = build.binary("arith.addi", build.binary("arith.muli", plane, sizes[0]), id0)
    first, second = (i for i in _AXES if i != axis)
    others = build.binary("arith.muli", sizes[first], sizes[second])
    heads = build.binary("arith.divui", build.i32(_GROUP - 1), sizes[axis])
    heads = build.binary("arith.addi", heads, build.i32(1))
    group, inside = divmod_(number, build.binary("arith.muli", heads, sizes[axis]))
    start = build.binary("arith.muli", group, heads)
    heads = build.binary("arith.minui", heads, build.binary("arith.subi", others, start))
    along, other = divmod_(inside, heads)
    if grows:
        along = build.binary("arith.subi", build.binary("arith.subi", sizes[axis], build.i32(1)), along)
    other = build.binary("arith.addi", start, other)
    new = {axis: along}
    new[second], new[first] = divmod_(other, sizes[first])
    for number_of, same in ids.items():
        for op in same:
            op.results[0].replace_all_uses_with(new[number_of])
            op.erase()


def _count_down(op: ir.Operation) -> None:
    build = Builder.after(op)
    id_ = op.results[0]
    programs = build.value("tile.num_programs", id_.type, [], {"axis": op.attributes["axis"]})
    last = build.binary("arith.subi", programs, build.integer(id_.type, 1))
    reversed_ = build.binary("arith.subi", last, id_)
    id_.replace_all_uses_except(reversed_, reversed_.owner.operation)
