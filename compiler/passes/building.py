"""Helpers that the passes share to make, copy and walk operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlir import ir

Values = dict[ir.Value, ir.Value]


class Builder:
    """Creates operations at one insertion point, with one location."""

    def __init__(self, ip: ir.InsertionPoint, loc: ir.Location):
        self.ip = ip
        self.loc = loc

    @staticmethod
    def before(op: ir.Operation) -> Builder:
        """Build in front of `op`, at its location."""
        return Builder(ir.InsertionPoint(op), op.location)

    @staticmethod
    def after(op: ir.Operation) -> Builder:
        """Build behind `op`, at its location."""
        return Builder(ir.InsertionPoint.after(op), op.location)

    @staticmethod
    def after_definition(value: ir.Value) -> Builder:
        """Build as early as `value` can be used."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            return Builder(ir.InsertionPoint.at_block_begin(owner), value.location)
        return Builder.after(owner.operation)

    def op(
        self,
        name: str,
        results: Sequence[ir.Type],
        operands: Sequence[ir.Value],
        attributes: Mapping[str, ir.Attribute] | None = None,
        regions: int = 0,
    ) -> ir.Operation:
        """Create an operation."""
        return ir.Operation.create(
            name, results=results, operands=operands, attributes=dict(attributes or {}), regions=regions, loc=self.loc, ip=self.ip
        )

    def value(
        self, name: str, result: ir.Type, operands: Sequence[ir.Value], attributes: Mapping[str, ir.Attribute] | None = None
    ) -> ir.Value:
        """Create an operation with one result and return that."""
        return self.op(name, [result], operands, attributes).results[0]

    def integer(self, type_: ir.Type, value: int) -> ir.Value:
        """Create an integer constant."""
        return self.value("arith.constant", type_, [], {"value": ir.IntegerAttr.get(type_, value)})

    def i32(self, value: int) -> ir.Value:
        """Create an i32 constant."""
        return self.integer(ir.IntegerType.get_signless(32, self.loc.context), value)

    def binary(self, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """Create an operation on two values of one type that returns that type."""
        return self.value(name, a.type, [a, b])

    def splat(self, scalar: ir.Value, like: ir.Type) -> ir.Value:
        """Create a tensor of the shape and layout of `like` that repeats a scalar; a scalar `like` gives the scalar."""
        if not isinstance(like, ir.RankedTensorType):
            return scalar
        return self.value("tile.splat", tensor_type(like, scalar.type), [scalar])

    def clone(self, op: ir.Operation, values: Values) -> ir.Operation:
        """Copy an operation without captures in its regions, its operands replaced by `values`; add its results to `values`."""
        new = op.clone(ip=self.ip)
        for i, operand in enumerate(op.operands):
            replacement = values.get(operand)
            if replacement is not None:
                new.operands[i] = replacement
        for old, result in zip(op.results, new.results, strict=True):
            values[old] = result
        return new


def zeros(build: Builder, type_: ir.Type) -> ir.Value:
    """Create a tensor of zeros."""
    element = type_.element_type
    zero = ir.IntegerAttr.get(element, 0) if isinstance(element, ir.IntegerType) else ir.FloatAttr.get(element, 0.0)
    return build.value("arith.constant", type_, [], {"value": ir.DenseElementsAttr.get_splat(type_, zero)})


def tensor_type(like: ir.Type, element: ir.Type) -> ir.Type:
    """Return `like`, a scalar or tensor type, with another element type."""
    if not isinstance(like, ir.RankedTensorType):
        return element
    return ir.RankedTensorType.get(like.shape, element, like.encoding)


def element_type(type_: ir.Type) -> ir.Type:
    """Return the element type of a tensor type, or a scalar type itself."""
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


def i32_attr(value: int, context: ir.Context) -> ir.Attribute:
    """Return an i32 attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32, context), value)


def i32_array(values: Sequence[int], context: ir.Context) -> ir.Attribute:
    """Return an array<i32: …> attribute."""
    return ir.DenseI32ArrayAttr.get(list(values), context)


def walk(op: ir.Operation) -> Iterator[ir.Operation]:
    """Yield the operations inside `op` in program order; the list of each block is read before its operations are visited."""
    for region in op.regions:
        for block in region.blocks:
            for inner in list(block.operations):
                inner = inner.operation
                yield inner
                if inner.regions:
                    yield from walk(inner)


def collect(module: ir.Operation, *names: str) -> list[ir.Operation]:
    """Return all operations of the given names inside `module`, in program order."""
    return [op for op in walk(module) if op.name in names]


def is_public(function: ir.Operation) -> bool:
    """Whether a function is a kernel, not a helper."""
    return "sym_visibility" not in function.attributes or ir.StringAttr(function.attributes["sym_visibility"]).value == "public"


def defining(value: ir.Value) -> ir.Operation | None:
    """Return the operation that makes a value, or None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def block_of(value: ir.Value) -> ir.Block:
    """Return the block in which a value is made."""
    owner = value.owner
    return owner if isinstance(owner, ir.Block) else owner.operation.block


def is_zero(value: ir.Value) -> bool:
    """Whether a value is a constant with all bits zero (a positive zero for floats)."""
    op = defining(value)
    if op is None:
        return False
    if op.name in ("tile.splat", "tile.broadcast", "tile.fp_to_fp", "tile.bitcast"):
        return is_zero(op.operands[0])
    if op.name != "arith.constant":
        return False
    attr = op.attributes["value"]
    if isinstance(attr, ir.DenseElementsAttr):
        if not attr.is_splat:
            return False
        attr = attr.get_splat_value()
    number = attr.value
    return number == 0 and str(number)[0] != "-"


def use_count(value: ir.Value) -> int:
    """Return the number of uses of a value."""
    return sum(1 for _ in value.uses)
