"""`tilegpu-late-sums`: sums over rows that a loop carries meet across lanes behind the loop only.

Before: a loop around matrix products carries a row sum, scaled and added to in each iteration (the denominator of attention):

    for … iter_args(l = zeros):                          l' = l * f + reduce(p) axis = 1

After: it carries what each lane has summed of its own columns. The lanes' sums are added up behind the loop; that took two rounds of
shuffles in each iteration, which the next products waited for.

    for … iter_args(l = zeros [rows, lanes]):            l' = l * broadcast(f) + reduce(reduce(reshape(p)))
    reduce(l) axis = 1

Additions are taken in another order than before, as in any reduction, and what is scaled are their parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.encoding import encode, layout_of
from tilewright.compiler.layouts import LinearLayout
from tilewright.compiler.layouts.shape_ops import broadcast_source, expand_source, reshape, slice_dim

from .building import Builder, collect, defining, i32_attr, is_zero, use_count, zeros
from .registry import register


@register("tilegpu-late-sums", only_for=("tile.dot", "tilegpu.wgmma"))
def late_sums(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for op in collect(module, "scf.for"):
        loop = Loop(op)
        if any(name == "tilegpu.wgmma" for name in loop.names):
            found = [s for i in range(len(loop.args)) if (s := _sum(loop, i)) is not None]
            if found:
                _rewrite(loop, found)


@dataclass
class _Sum:
    """A carried row sum: its index, the operations that make its next value, and the shape (rows, columns of a thread above those of other
    lanes, lanes, columns of a thread below) of what is reduced."""

    index: int
    add: ir.Operation
    scale: ir.Operation | None
    reduce: ir.Operation
    shape: tuple[int, int, int, int]


def _sum(loop: Loop, index: int) -> _Sum | None:
    """Read a carried value as a row sum, if it is one."""
    carried, add = loop.args[index], defining(loop.yields[index])
    if not isinstance(carried.type, ir.RankedTensorType) or not is_zero(loop.inits[index]):
        return None
    if add is None or add.name != "arith.addf" or loop.definition(loop.yields[index]) is None or use_count(add.results[0]) != 1:
        return None
    for kept, reduced in (add.operands, reversed(list(add.operands))):
        scale, reduce = defining(kept), defining(reduced)
        if reduce is None or not _adds_rows(reduce) or use_count(reduced) != 1 or loop.definition(reduced) is None:
            continue
        if kept == carried:
            scale = None
        elif scale is None or scale.name != "arith.mulf" or carried not in list(scale.operands) or use_count(kept) != 1:
            continue
        shape = _shape(layout_of(reduce.operands[0].type))
        factor_is_free = scale is None or list(scale.operands).count(carried) == 1
        if shape is not None and use_count(carried) == 1 and factor_is_free:
            return _Sum(index, add, scale, reduce, shape)
    return None


def _adds_rows(op: ir.Operation) -> bool:
    """Whether an operation is the sum of the rows of one matrix, in any order."""
    if op.name != "tile.reduce" or len(op.operands) != 1 or list(op.attributes) != ["axis"]:
        return False
    body = [o.operation for o in op.regions[0].blocks[0].operations]
    plain = len(body) == 2 and body[0].name == "arith.addf" and set(body[0].operands) == set(op.regions[0].blocks[0].arguments)
    return plain and len(op.operands[0].type.shape) == 2 and ir.IntegerAttr(op.attributes["axis"]).value == 1


def _shape(layout: LinearLayout) -> tuple[int, int, int, int] | None:
    """Return `_Sum.shape` for a layout, None where columns are not held by threads and neighbouring lanes alone."""
    rows, columns = layout.out_sizes
    lanes = sorted(c for c in layout.column("lane") if c & (columns - 1))
    others = [c for name in layout.names if name not in ("register", "lane") for c in layout.column(name)]
    if not lanes or any(c & (columns - 1) for c in others) or lanes != [lanes[0] << i for i in range(len(lanes))]:
        return None
    count, below = 1 << len(lanes), lanes[0]
    return (rows, columns // (count * below), count, below) if lanes[-1] < columns and below & (below - 1) == 0 else None


def _rewrite(loop: Loop, sums: list[_Sum]) -> None:
    """Let a loop carry parts of these sums."""
    partial = [_part(s) for s in sums]
    for s, part in zip(sums, partial, strict=True):
        _next(loop, s, part)
    build = Builder.before(loop.op)
    inits = list(loop.inits)
    for s, part in zip(sums, partial, strict=True):
        inits[s.index] = zeros(build, part.type)
    types = [v.type for v in inits]
    attributes = {name: loop.op.attributes[name] for name in loop.op.attributes}
    new = build.op("scf.for", types, [loop.lower, loop.upper, loop.step, *inits], attributes, regions=1)
    block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[loop.op.location] * (len(types) + 1))
    for op in [o.operation for o in loop.block.operations]:
        block.append(op)
    for old, argument in zip((loop.iv, *loop.args), block.arguments, strict=True):
        old.replace_all_uses_with(argument)
    results = list(new.results)
    for s in sums:
        results[s.index] = _total(Builder.after(new), results[s.index], loop.op.results[s.index].type)
    for old, result in zip(loop.op.results, results, strict=True):
        old.replace_all_uses_with(result)
    loop.op.erase()


def _part(s: _Sum) -> ir.Value:
    """Sum within lanes."""
    build, (source,) = Builder.before(s.reduce), s.reduce.operands
    layout = reshape(layout_of(source.type), s.shape)
    value = build.value("tile.reshape", _type(source.type, layout), [source])
    return _reduce(build, _reduce(build, value, 1), 2)


def _next(loop: Loop, s: _Sum, part: ir.Value) -> None:
    """Make the next value of the carried sum one of parts. The carried value is still the argument of the old type, which is replaced."""
    build = Builder.before(s.add)
    kept = loop.args[s.index]
    if s.scale is not None:
        (factor,) = (v for v in s.scale.operands if v != kept)
        layout = broadcast_source(layout_of(part.type), (s.shape[0], 1))
        factor = _converted(build, factor, expand_source(layout, 1))
        column = build.value("tile.expand_dims", _type(factor.type, layout), [factor], {"axis": i32_attr(1, loop.op.context)})
        kept = build.op("arith.mulf", [part.type], [kept, build.value("tile.broadcast", part.type, [column])]).results[0]
    total = build.op("arith.addf", [part.type], [kept, part]).results[0]
    s.add.results[0].replace_all_uses_with(total)
    for op in (s.add, s.scale, s.reduce):
        if op is not None:
            op.erase()


def _total(build: Builder, parts: ir.Value, type_: ir.Type) -> ir.Value:
    return _converted(build, _reduce(build, parts, 1), layout_of(type_))


def _reduce(build: Builder, value: ir.Value, axis: int) -> ir.Value:
    """Sum along an axis."""
    element = value.type.element_type
    op = build.op(
        "tile.reduce",
        [_type(value.type, slice_dim(layout_of(value.type), axis))],
        [value],
        {"axis": i32_attr(axis, build.loc.context)},
        regions=1,
    )
    block = op.regions[0].blocks.append(element, element, arg_locs=[build.loc] * 2)
    inside = Builder(ir.InsertionPoint(block), build.loc)
    inside.op("tile.yield", [], [inside.binary("arith.addf", *block.arguments)])
    return op.results[0]


def _converted(build: Builder, value: ir.Value, layout: LinearLayout) -> ir.Value:
    type_ = _type(value.type, layout)
    return value if value.type == type_ else build.value("tilegpu.convert_layout", type_, [value])


def _type(like: ir.Type, layout: LinearLayout) -> ir.Type:
    return ir.RankedTensorType.get(list(layout.out_sizes), like.element_type, encode(layout))
