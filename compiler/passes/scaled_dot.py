"""Decomposition of `tile.dot_scaled`: operands are widened to bf16 (f16 beside an f16 operand), multiplied by their scales, and a plain dot
does the rest. Exact for scales that are powers of two, as far as the wide type's range reaches."""

from __future__ import annotations

from mlir import ir

from tilewright.dialects import tile

from .building import Builder, tensor_type

_FLOAT8 = {"e4m3": ir.Float8E4M3FNType, "e5m2": ir.Float8E5M2Type}


def decompose_scaled(op: ir.Operation) -> None:
    """Replace one `tile.dot_scaled`."""
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands = iter(op.operands)
    a, a_scale, b, b_scale, acc = (next(operands) if size else None for size in sizes)
    build = _Decomposer(op)
    formats = [ir.StringAttr(op.attributes[f"{name}_format"]).value for name in "ab"]
    wide = ir.F16Type.get(op.context) if "fp16" in formats else ir.BF16Type.get(op.context)
    left = build.widened(a, formats[0], wide, 1 if _k_pack(op, "a_k_pack") else 0)
    right = build.widened(b, formats[1], wide, 0 if _k_pack(op, "b_k_pack") else 1)
    if a_scale is not None:
        left = build.scaled(left, a_scale, wide, False)
    if b_scale is not None:
        right = build.scaled(right, b_scale, wide, True)
    result = build.value("tile.dot", acc.type, [left, right, acc], {"precision": tile.enum_attr("precision", "ieee")})
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _k_pack(op: ir.Operation, name: str) -> bool:
    return name not in op.attributes or ir.BoolAttr(op.attributes[name]).value


class _Decomposer(Builder):
    """Builds the widening arithmetic in front of a scaled dot."""

    def __init__(self, op: ir.Operation):
        super().__init__(ir.InsertionPoint(op), op.location)
        self.context = op.context
        self.i8, self.i16 = (ir.IntegerType.get_signless(w, self.context) for w in (8, 16))

    def constant(self, like: ir.Type, number: int) -> ir.Value:
        """Repeat an integer over a tensor type."""
        attr = ir.DenseElementsAttr.get_splat(like, ir.IntegerAttr.get(like.element_type, number))
        return self.value("arith.constant", like, [], {"value": attr})

    def reshaped(self, value: ir.Value, shape: list[int]) -> ir.Value:
        """Reshape a tensor."""
        return self.value("tile.reshape", ir.RankedTensorType.get(shape, value.type.element_type), [value])

    def transposed(self, value: ir.Value, order: list[int]) -> ir.Value:
        """Permute dimensions."""
        shape = [value.type.shape[d] for d in order]
        attributes = {"order": ir.DenseI32ArrayAttr.get(order, self.context)}
        return self.value("tile.trans", ir.RankedTensorType.get(shape, value.type.element_type), [value], attributes)

    def converted(self, value: ir.Value, wide: ir.Type) -> ir.Value:
        """Convert between float types."""
        return value if value.type.element_type == wide else self.value("tile.fp_to_fp", tensor_type(value.type, wide), [value])

    def widened(self, value: ir.Value, kind: str, wide: ir.Type, packed_dim: int) -> ir.Value:
        """Return an operand in the wide type; e2m1 is unpacked along `packed_dim`."""
        if kind == "e2m1":
            return self._unpacked(value, wide, packed_dim)
        if kind in _FLOAT8 and isinstance(value.type.element_type, ir.IntegerType):
            value = self.value("tile.bitcast", tensor_type(value.type, _FLOAT8[kind].get(self.context)), [value])
        return self.converted(value, wide)

    def _unpacked(self, value: ir.Value, wide: ir.Type, dim: int) -> ir.Value:
        """Split bytes into two e2m1 numbers, the low nibble first, and widen them."""
        low = self.binary("arith.andi", value, self.constant(value.type, 0xF))
        high = self.binary("arith.shrui", value, self.constant(value.type, 4))
        halves = [self._from_e2m1(nibbles, wide) for nibbles in (low, high)]
        shape = list(value.type.shape)
        joined = self.value("tile.join", ir.RankedTensorType.get([*shape, 2], wide), halves)
        if dim == 0:
            joined = self.transposed(joined, [0, 2, 1])
        shape[dim] *= 2
        return self.reshaped(joined, shape)

    def _from_e2m1(self, nibbles: ir.Value, wide: ir.Type) -> ir.Value:
        """Put sign, exponent and mantissa where the wide format has them and correct the exponent's bias by a multiplication."""
        mantissa, bias = (10, 15) if isinstance(wide, ir.F16Type) else (7, 127)
        type_ = tensor_type(nibbles.type, self.i16)
        bits = self.value("arith.extui", type_, [nibbles])
        sign = self.binary("arith.shli", self.binary("arith.andi", bits, self.constant(type_, 8)), self.constant(type_, 12))
        magnitude = self.binary("arith.andi", bits, self.constant(type_, 7))
        magnitude = self.binary("arith.shli", magnitude, self.constant(type_, mantissa - 1))
        number = self.value("arith.bitcast", tensor_type(type_, wide), [self.binary("arith.ori", sign, magnitude)])
        factor = ir.DenseElementsAttr.get_splat(number.type, ir.FloatAttr.get(wide, 2.0 ** (bias - 1)))
        return self.binary("arith.mulf", number, self.value("arith.constant", number.type, [], {"value": factor}))

    def scaled(self, value: ir.Value, scale: ir.Value, wide: ir.Type, is_right: bool) -> ir.Value:
        """Multiply an operand by its scales: [rows, K / group] for the left one, [columns, K / group] for the right one."""
        outer, groups = scale.type.shape
        k = value.type.shape[0 if is_right else 1]
        factors = self._factors(scale, wide)
        axis = ir.IntegerAttr.get(ir.IntegerType.get_signless(32, self.context), 2)
        factors = self.value("tile.expand_dims", ir.RankedTensorType.get([outer, groups, 1], wide), [factors], {"axis": axis})
        factors = self.value("tile.broadcast", ir.RankedTensorType.get([outer, groups, k // groups], wide), [factors])
        factors = self.reshaped(factors, [outer, k])
        if is_right:
            factors = self.transposed(factors, [1, 0])
        return self.binary("arith.mulf", value, factors)

    def _factors(self, scale: ir.Value, wide: ir.Type) -> ir.Value:
        """Convert scales; e8m0 in i8 is the exponent of a bf16, 255 being NaN."""
        if not isinstance(scale.type.element_type, ir.IntegerType):
            return self.converted(scale, wide)
        bf16 = ir.BF16Type.get(self.context)
        type_ = tensor_type(scale.type, self.i16)
        raw = self.value("arith.extui", type_, [scale])
        bits = self.binary("arith.shli", raw, self.constant(type_, 7))
        is_nan = self.value(
            "arith.cmpi",
            tensor_type(type_, ir.IntegerType.get_signless(1, self.context)),
            [raw, self.constant(type_, 255)],
            {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64, self.context), 0)},
        )
        bits = self.value("arith.select", type_, [is_nan, self.constant(type_, 0x7FC0), bits])
        return self.converted(self.value("arith.bitcast", tensor_type(type_, bf16), [bits]), wide)
