"""`tile-loop-programs`: a CTA works on one program after the other.

Before: the last pass of `ttir` but for clean-up: what TMA loads is known (`tile-host-descriptors`, `tile-pointer-boxes`).
After, where that pays: the body stands in a loop over programs, and as many CTAs are launched as run at a time:

    for t in range(program_id(0), x * y * z, num_programs(0)):        with the attribute `tile.programs`
        program_id(0) is t mod x, program_id(1) is t / x mod y, program_id(2) is t / (x * y)

`x`, `y`, `z` are the sizes of the grid that the user asked for: arguments that the launcher adds (`tile.grid = axis`). They replace
`num_programs`.

Programs that own a multiprocessor begin with empty buffers, and end with tensor cores that wait for the last results to be stored: for
attention on an H200 that takes as long as three blocks of keys. In the loop a producer (`tilegpu-warp-specialize`) loads the first blocks
of the next program while the consumers finish this one, and stores may wait for the next products (`tilegpu-defer-stores`).

Programs of a launch may run in any order, so this is right for all that do not wait for each other. It pays where a producer feeds all
products, and where all programs are equally long: others are handed out better by the hardware, one by one (`tile-order-programs`).
It also pays for norms of rows so long that registers leave room for two of them at most (`analysis.row_programs`). Loops
around reductions without products have the attribute `tile.queue`, and their kernels one more argument of that attribute behind the sizes:
the CTAs of such a loop may take programs from a queue (`passes/program_queue.py`).
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.analysis.loop_slice import PROGRAMS, may_do_anything
from tilewright.compiler.analysis.machine import Machine
from tilewright.compiler.analysis.order import programs_may_wait
from tilewright.compiler.analysis.row_programs import rows_pay, varying_values
from tilewright.compiler.analysis.specialization import MIN_BYTES, MIN_REGISTERS, REGISTERS
from tilewright.dialects import tile

from .building import Builder, collect, i32_attr, is_public, walk
from .descriptor_arguments import add_argument
from .program_queue import QUEUE
from .registry import register

#: Attribute (i32) of an argument: the axis of the grid whose size it is.
GRID = "tile.grid"
#: Unit attribute of these arguments: all programs take equally long, so that fewer CTAs may end no later than more.
ALIKE = "tile.alike"
_ID, _COUNT, _LOAD = "tile.program_id", "tile.num_programs", "tile.descriptor_load"
_PRODUCTS = frozenset({"tile.dot", "tile.dot_scaled"})
#: What says where a program runs, or has memory for each CTA.
_OF_A_CTA = frozenset({"tile.smid", "tile.globaltimer", "tile.print", "tile.assert", "tile.make_descriptor"})


@register("tile-loop-programs", only_for=(_ID,))
def loop_programs(module: ir.Operation, *, target: str = "cuda:80", num_warps: int = 4, num_ctas: int = 1, force: bool = False) -> None:
    """Run on a module; see the file's docstring. With `force` also where it does not pay, but for clusters."""
    if not Machine(target, num_warps).has_tma:
        return
    for function in collect(module, "func.func"):
        ops = list(walk(function))
        pays = rows_pay(ops, num_warps, num_ctas) or _pays(ops, num_warps)
        if is_public(function) and (pays or (num_ctas == 1 and force)) and _is_possible(function, ops):
            names = {op.name for op in ops}
            alike = pays and not any(op.name in _PRODUCTS and _is_in_branch(op) for op in ops)
            _loop_over(function, ops, num_ctas == 1 and "tile.reduce" in names and _PRODUCTS.isdisjoint(names), alike)


def _is_possible(function: ir.Operation, ops: list[ir.Operation]) -> bool:
    if len(function.regions[0].blocks) != 1 or any(PROGRAMS in op.attributes for op in ops):
        return False
    return not any(programs_may_wait(op) or may_do_anything(op) or op.name in _OF_A_CTA for op in ops)


def _pays(ops: list[ir.Operation], num_warps: int) -> bool:
    """Whether all products are in loops of the kernel's own body that a producer can feed, and that are as long in every program that does
    not end at once."""
    loops = [op.parent.operation for op in ops if op.name in _PRODUCTS]
    if not loops or num_warps not in REGISTERS or not all(loop.name == "scf.for" and _is_in_body(loop) for loop in loops):
        return False
    varying = varying_values(ops)
    return all(_is_fed(loop, num_warps) and not any(v in varying for v in list(loop.operands)[:3]) for loop in loops)


def _is_in_body(loop: ir.Operation) -> bool:
    """Whether a loop stands in the kernel's body, perhaps in a branch: programs may leave early."""
    parent = loop.parent.operation
    while parent.name == "scf.if":
        parent = parent.parent.operation
    return parent.name == "func.func"


def _is_in_branch(op: ir.Operation) -> bool:
    while op.name not in ("scf.if", "func.func"):
        op = op.parent.operation
    return op.name == "scf.if"


def _is_fed(loop: ir.Operation, num_warps: int) -> bool:
    """Whether TMA loads all blocks of a loop, and enough for roles to pay (see `analysis.specialization`)."""
    asked = ir.BoolAttr(loop.attributes["tile.warp_specialize"]).value if "tile.warp_specialize" in loop.attributes else None
    ops = [o.operation for o in loop.regions[0].blocks[0].operations]
    blocks = [op.results[0].type for op in ops if op.name == _LOAD]
    products = [op.results[0].type for op in ops if op.name in _PRODUCTS]
    others = any(op.name == "tile.load" and isinstance(op.results[0].type, ir.RankedTensorType) for op in ops)
    if asked is False or not blocks or others:
        return False
    if asked:
        return True
    words = sum(prod(t.shape) for t in products) // (32 * num_warps)
    return sum(prod(t.shape) * element_bytes(t.element_type) for t in blocks) >= MIN_BYTES and words >= MIN_REGISTERS


def _loop_over(function: ir.Operation, ops: list[ir.Operation], queue: bool, alike: bool) -> None:
    """Put the kernel's body into a loop over programs, which may take them from a `queue`, and which may all be `alike`."""
    *body, end = (o.operation for o in function.regions[0].blocks[0].operations)
    context, i32 = function.context, ir.IntegerType.get_signless(32, function.context)
    more = {ALIKE: ir.UnitAttr.get(context)} if alike else {}
    sizes = [add_argument(function, i32, {GRID: i32_attr(axis, context), **more}, function.location) for axis in range(3)]
    build = Builder.before(end)
    first, ctas = (build.value(name, i32, [], {"axis": i32_attr(0, context)}) for name in (_ID, _COUNT))
    plane = build.binary("arith.muli", sizes[0], sizes[1])
    attributes = {PROGRAMS: ir.UnitAttr.get(context)}
    if queue:
        attributes[QUEUE] = ir.UnitAttr.get(context)
        add_argument(function, tile.ptr_type(i32), {QUEUE: ir.UnitAttr.get(context)}, function.location)
    loop = build.op("scf.for", [], [first, build.binary("arith.muli", plane, sizes[2]), ctas], attributes, 1)
    block = loop.regions[0].blocks.append(i32, arg_locs=[function.location])
    build = Builder(ir.InsertionPoint(block), function.location)
    ids = _ids(build, block.arguments[0], sizes, plane, {_axis(op) for op in ops if op.name == _ID})
    for op in body:
        block.append(op)
    build.op("scf.yield", [], [])
    for op in ops:
        if op.name in (_ID, _COUNT):
            op.results[0].replace_all_uses_with(ids[_axis(op)] if op.name == _ID else sizes[_axis(op)])
            op.erase()


def _ids(build: Builder, number: ir.Value, sizes: list[ir.Value], plane: ir.Value, axes: set[int]) -> dict[int, ir.Value]:
    """Return the program's ids along these axes."""
    out = {}
    if 0 in axes:
        out[0] = build.binary("arith.remui", number, sizes[0])
    if 1 in axes:
        out[1] = build.binary("arith.remui", build.binary("arith.divui", number, sizes[0]), sizes[1])
    if 2 in axes:
        out[2] = build.binary("arith.divui", number, plane)
    return out


def _axis(op: ir.Operation) -> int:
    return ir.IntegerAttr(op.attributes["axis"]).value
