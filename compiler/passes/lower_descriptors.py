"""`tile-lower-descriptors`: tensor descriptors become pointers, bounds and strides.

Before: `tile.make_descriptor` and the operations on its result, which reaches them directly or as a loop's invariant.
After: only descriptors that are arguments of the kernel are left (`tile-host-descriptors`), with their users. All other loads and stores
of blocks are `tile.load` and `tile.store` on pointer tensors, whose scalar part (the block's corner) is added to the base before the tensor
of offsets, so that only a scalar changes from block to block.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilewright.dialects import tile

from .building import Builder, collect, defining, is_public
from .device_descriptors import SLOT
from .diagnostics import user_error
from .registry import register

_SGE, _SLT = 5, 2
_MOVES = "A tensor descriptor that changes in a loop or a branch is not supported: make it with tl.make_tensor_descriptor where it is used"


_OPS = tuple(
    f"tile.{name}" for name in ("make_descriptor", *(f"descriptor_{kind}" for kind in ("load", "store", "reduce", "gather", "scatter")))
)


@register("tile-lower-descriptors", only_for=_OPS)
def lower_descriptors(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring. Raises CompilationError if a descriptor changes in a loop or branch."""
    for op in collect(module, *_LOWERINGS):
        if not _is_passed(op.operands[0]):
            _LOWERINGS[op.name](op)
    for op in reversed(collect(module, "tile.make_descriptor")):
        if SLOT in op.attributes:
            continue
        if any(True for _ in op.results[0].uses):
            raise user_error(op, _MOVES)
        op.erase()


def _is_passed(descriptor: ir.Value) -> bool:
    """Whether a descriptor is an argument of the kernel, made on the host (`tile-host-descriptors`), or a tensor map of the kernel's own
    (`tile-device-descriptors`)."""
    owner = descriptor.owner
    if not isinstance(owner, ir.Block) and SLOT in owner.attributes:
        return True
    return isinstance(owner, ir.Block) and owner.owner.operation.name == "func.func" and is_public(owner.owner.operation)


@dataclass(frozen=True)
class _Descriptor:
    """The operands of a `tile.make_descriptor`."""

    base: ir.Value
    shape: list[ir.Value]
    strides: list[ir.Value]
    pads_with_nan: bool
    block: tuple[int, ...]
    element: ir.Type


def _descriptor(user: ir.Operation) -> _Descriptor:
    value = user.operands[0]
    op = defining(value)
    if op is None or op.name != "tile.make_descriptor":
        raise user_error(user, _MOVES)
    block, element, _ = tile.desc_info(value.type)
    base, *rest = op.operands
    rank = len(rest) // 2
    padding = str(op.attributes["padding"]) if "padding" in op.attributes else ""
    return _Descriptor(base, rest[:rank], rest[rank:], "nan" in padding.lower(), tuple(block), element)


class _Block:
    """The pointers and the mask of one block, built in front of an operation."""

    def __init__(self, op: ir.Operation, descriptor: _Descriptor):
        self.build = Builder.before(op)
        self.descriptor = descriptor
        context = op.context
        self.i1, self.i32, self.i64 = (ir.IntegerType.get_signless(w, context) for w in (1, 32, 64))

    def tensor(self, element: ir.Type, shape: tuple[int, ...] | None = None) -> ir.Type:
        """Return the tensor type of the block's shape, or of another."""
        return ir.RankedTensorType.get(shape or self.descriptor.block, element)

    def spread(self, value: ir.Value, dim: int) -> ir.Value:
        """Repeat a tensor of rank 1 that runs along `dim` over the whole block."""
        rank = len(self.descriptor.block)
        element = value.type.element_type
        for axis in [d for d in range(rank) if d != dim]:
            shape = list(value.type.shape)
            shape.insert(axis, 1)
            attribute = {"axis": ir.IntegerAttr.get(self.i32, axis)}
            value = self.build.value("tile.expand_dims", self.tensor(element, tuple(shape)), [value], attribute)
        if tuple(value.type.shape) == self.descriptor.block:
            return value
        return self.build.value("tile.broadcast", self.tensor(element), [value])

    def splat(self, scalar: ir.Value, size: int) -> ir.Value:
        """Repeat a scalar over a tensor of rank 1."""
        return self.build.value("tile.splat", self.tensor(scalar.type, (size,)), [scalar])

    def range(self, size: int) -> ir.Value:
        """Return 0, 1, … size - 1."""
        attributes = {"start": ir.IntegerAttr.get(self.i32, 0), "end": ir.IntegerAttr.get(self.i32, size)}
        return self.build.value("tile.range", self.tensor(self.i32, (size,)), [], attributes)

    def wide(self, value: ir.Value) -> ir.Value:
        """Sign-extend i32 to i64."""
        type_ = self.tensor(self.i64, tuple(value.type.shape)) if isinstance(value.type, ir.RankedTensorType) else self.i64
        return self.build.value("arith.extsi", type_, [value])

    def within(self, position: ir.Value, dim: int) -> ir.Value:
        """Return where a tensor of rank 1 of positions along `dim` lies in the described tensor."""
        size = position.type.shape[0]
        type_ = self.tensor(self.i1, (size,))
        zero, end = self.splat(self.build.i32(0), size), self.splat(self.descriptor.shape[dim], size)
        tests = []
        for predicate, bound in ((_SGE, zero), (_SLT, end)):
            attribute = {"predicate": ir.IntegerAttr.get(self.i64, predicate)}
            tests.append(self.build.value("arith.cmpi", type_, [position, bound], attribute))
        return self.build.binary("arith.andi", *tests)

    def access(self, corner: list[ir.Value | None], rows: ir.Value | None = None) -> tuple[ir.Value, ir.Value]:
        """Return pointers and mask of the block at `corner`; with `rows`, dimension 0 takes these indices instead."""
        build, descriptor = self.build, self.descriptor
        base, offset, mask = descriptor.base, None, None
        for dim, size in enumerate(descriptor.block):
            stride = descriptor.strides[dim]
            steps = self.range(size)
            if dim == 0 and rows is not None:
                position, steps = rows, rows
            else:
                start = corner[dim]
                position = build.binary("arith.addi", self.splat(start, size), steps)
                step = build.binary("arith.muli", self.wide(start), stride)
                base = build.value("tile.addptr", base.type, [base, step])
            along = build.binary("arith.muli", self.wide(steps), self.splat(stride, size))
            inside = self.within(position, dim)
            along, inside = self.spread(along, dim), self.spread(inside, dim)
            offset = along if offset is None else build.binary("arith.addi", offset, along)
            mask = inside if mask is None else build.binary("arith.andi", mask, inside)
        pointers = build.value("tile.splat", self.tensor(base.type), [base])
        return build.value("tile.addptr", pointers.type, [pointers, offset]), mask


def _padding(block: _Block) -> ir.Value:
    descriptor = block.descriptor
    type_ = block.tensor(descriptor.element)
    if isinstance(descriptor.element, ir.IntegerType):
        number = ir.IntegerAttr.get(descriptor.element, 0)
    else:
        number = ir.FloatAttr.get(descriptor.element, float("nan") if descriptor.pads_with_nan else 0.0)
    return block.build.value("arith.constant", type_, [], {"value": ir.DenseElementsAttr.get_splat(type_, number)})


def _segments(sizes: list[int], op: ir.Operation) -> dict[str, ir.Attribute]:
    return {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(sizes, op.context)}


def _hints(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in ("cache", "evict") if name in op.attributes}


def _load_block(op: ir.Operation, block: _Block, pointers: ir.Value, mask: ir.Value) -> None:
    attributes = {**_hints(op), **_segments([1, 1, 1], op)}
    loaded = block.build.value("tile.load", block.tensor(block.descriptor.element), [pointers, mask, _padding(block)], attributes)
    wanted = op.results[0].type
    if wanted != loaded.type:
        loaded = block.build.value("tile.reshape", wanted, [loaded])
    op.results[0].replace_all_uses_with(loaded)
    op.erase()


def _as_block(block: _Block, value: ir.Value) -> ir.Value:
    type_ = block.tensor(block.descriptor.element)
    return value if value.type == type_ else block.build.value("tile.reshape", type_, [value])


def _load(op: ir.Operation) -> None:
    desc, *corner = op.operands
    block = _Block(op, _descriptor(op))
    _load_block(op, block, *block.access(corner))


def _gather(op: ir.Operation) -> None:
    desc, rows, column = op.operands
    block = _Block(op, _gathered(_descriptor(op), rows))
    _load_block(op, block, *block.access([None, column], rows))


def _gathered(descriptor: _Descriptor, rows: ir.Value) -> _Descriptor:
    """Return the descriptor with a block of as many rows as there are indices."""
    block = (rows.type.shape[0], *descriptor.block[1:])
    return _Descriptor(descriptor.base, descriptor.shape, descriptor.strides, descriptor.pads_with_nan, block, descriptor.element)


def _store(op: ir.Operation) -> None:
    desc, value, *corner = op.operands
    block = _Block(op, _descriptor(op))
    pointers, mask = block.access(corner)
    block.build.op("tile.store", [], [pointers, _as_block(block, value), mask])
    op.erase()


def _scatter(op: ir.Operation) -> None:
    desc, value, rows, column = op.operands
    block = _Block(op, _gathered(_descriptor(op), rows))
    pointers, mask = block.access([None, column], rows)
    block.build.op("tile.store", [], [pointers, value, mask])
    op.erase()


def _reduce(op: ir.Operation) -> None:
    desc, value, *corner = op.operands
    block = _Block(op, _descriptor(op))
    pointers, mask = block.access(corner)
    value = _as_block(block, value)
    attributes = {"kind": op.attributes["kind"], "sem": tile.enum_attr("sem", "relaxed")}
    block.build.op("tile.atomic_rmw", [value.type], [pointers, value, mask], attributes)
    op.erase()


_LOWERINGS = {
    "tile.descriptor_load": _load,
    "tile.descriptor_store": _store,
    "tile.descriptor_reduce": _reduce,
    "tile.descriptor_gather": _gather,
    "tile.descriptor_scatter": _scatter,
}
