"""Vectors that a loop of matrix products needs beside its blocks become blocks of their own, for `tilegpu-pipeline`.

Before: `tile.load` of a vector with the attribute `tilegpu.run`, through pointers that are one scalar pointer and offsets.
After: `tile.descriptor_load` of a `tile.make_descriptor` with the attribute `tilegpu.bulk`: no tensor map, just the pointer, from which TMA
copies the vector as it lies in memory (`lowering.tma`). It then arrives in shared memory together with the blocks of its iteration.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.loop_slice import GLOBAL_WRITES, Loop, base_argument
from tilewright.compiler.analysis.order import Order
from tilewright.compiler.encoding import encode_shared
from tilewright.compiler.layouts import SharedLayout, identity
from tilewright.compiler.lowering.tensor_map import BULK
from tilewright.dialects import tile

from .assign_layouts import RUN
from .building import Builder, defining, walk

_FIRST_OF = {"arith.addi", "arith.subi", "arith.muli"}


def run_layout(type_: ir.Type) -> SharedLayout:
    """Return the layout of a vector in shared memory: as it lies in global memory."""
    return identity(tuple(type_.shape), (0,))


def can_be_bulk(loop: Loop, load: ir.Operation) -> bool:
    """Whether a load of a loop can become a bulk copy: of memory that the kernel does not write, nor waits for others to write."""
    if RUN not in load.attributes or "is_volatile" in load.attributes:
        return False
    pointers = defining(load.operands[0])
    if pointers is None or pointers.name != "tile.addptr" or pointers.operands[1].type.element_type.width != 32:
        return False
    base = defining(pointers.operands[0])
    if base is None or base.name != "tile.splat" or not loop.is_outside(base.operands[0]) or not _has_first(pointers.operands[1]):
        return False
    function = loop.op
    while function.name != "func.func":
        function = function.parent.operation
    ops = list(walk(function))
    argument = base_argument(load.operands[0])
    written = [base_argument(op.operands[0]) for op in ops if op.name in GLOBAL_WRITES]
    is_written = any(other is None or other == argument for other in written)
    return argument is not None and not is_written and not Order(ops).is_behind(load)


def make_bulk(loop: Loop, load: ir.Operation) -> ir.Operation:
    """Rewrite a load for which `can_be_bulk` holds; return the new one."""
    type_ = load.results[0].type
    pointers = defining(load.operands[0])
    base = defining(pointers.operands[0]).operands[0]
    build, outside = Builder.before(load), Builder.before(loop.op)
    described = tile.desc_type(tuple(type_.shape), type_.element_type, encode_shared(run_layout(type_)))
    length = outside.i32(type_.shape[0])
    stride = outside.integer(ir.IntegerType.get_signless(64, load.context), 1)
    attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1], load.context), BULK: ir.UnitAttr.get(load.context)}
    descriptor = outside.value("tile.make_descriptor", described, [base, length, stride], attributes)
    kept = {name: load.attributes[name] for name in load.attributes if name in ("evict", "tilegpu.ahead")}
    new = build.op("tile.descriptor_load", [type_], [descriptor, _first(build, pointers.operands[1])], kept)
    load.results[0].replace_all_uses_with(new.results[0])
    load.erase()
    return new


def _has_first(value: ir.Value) -> bool:
    op = defining(value)
    if op is None:
        return False
    if op.name in _FIRST_OF:
        return all(map(_has_first, op.operands))
    return op.name in ("tile.splat", "tile.range") or (
        op.name == "arith.constant" and ir.DenseElementsAttr(op.attributes["value"]).is_splat
    )


def _first(build: Builder, value: ir.Value) -> ir.Value:
    """Compute the first element of a tensor of integers."""
    op = defining(value)
    if op.name == "tile.splat":
        return op.operands[0]
    if op.name == "tile.range":
        return build.i32(ir.IntegerAttr(op.attributes["start"]).value)
    if op.name == "arith.constant":
        splat = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
        return build.integer(splat.type, ir.IntegerAttr(splat).value)
    return build.binary(op.name, *(_first(build, v) for v in op.operands))
