"""`tile-decompose-dots`: dots that no matrix instruction computes become several that one does.

Before: `tile.dot` of any precision and type, `tile.dot_scaled`.
After: no `tile.dot_scaled`; dots of f32 ask for tf32 or ieee only; accumulators of half precision are f32 unless the operands are f16;
8-bit floats that the target has no instruction for are f16; a dot without accumulator that is added to something accumulates there.

Decompositions of f32 into parts: tf32x3 takes the high part (a mantissa of 10 bits) and the rest; bf16x3 and bf16x6 two or three
bf16 terms. The small products come first. Where the rest is NaN because the value is infinite, the small products count as zero.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.machine import Machine
from tilewright.dialects import tile

from .building import Builder, collect, is_zero, tensor_type, use_count, zeros
from .registry import register
from .scaled_dot import decompose_scaled

_TF32_MASK = 0xFFFFE000
# Products of the terms (first is the largest) of a and b, small ones in front.
_PRODUCTS = {
    "tf32x3": [(1, 0), (0, 1), (0, 0)],
    "bf16x3": [(1, 0), (0, 1), (0, 0)],
    "bf16x6": [(1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0)],
}
_TERMS = {"tf32x3": 2, "bf16x3": 2, "bf16x6": 3}


@register("tile-decompose-dots", only_for=("tile.dot", "tile.dot_scaled"))
def decompose_dots(module: ir.Operation, *, target: str = "cuda:80") -> None:
    """Run on a module; see the file's docstring."""
    machine = Machine(target, 4)
    for op in collect(module, "tile.dot_scaled"):
        decompose_scaled(op)
    for op in collect(module, "tile.dot"):
        op = _with_supported_operands(op, machine)
        op = _with_wide_accumulator(op)
        op = _into_accumulator(op)
        precision = tile.enum_value(op.attributes["precision"])
        if precision in _PRODUCTS:
            if str(op.operands[0].type.element_type) == "f32":
                _split(op, precision)
            else:
                op.attributes["precision"] = tile.enum_attr("precision", "ieee")


def _convert(build: Builder, value: ir.Value, element: ir.Type) -> ir.Value:
    if value.type.element_type == element:
        return value
    return build.value("tile.fp_to_fp", tensor_type(value.type, element), [value])


def _dot(build: Builder, like: ir.Operation, a: ir.Value, b: ir.Value, acc: ir.Value, precision: str | None = None) -> ir.Operation:
    attributes = {name: like.attributes[name] for name in like.attributes}
    if precision is not None:
        attributes["precision"] = tile.enum_attr("precision", precision)
    return build.op("tile.dot", [acc.type], [a, b, acc], attributes)


def _replace(op: ir.Operation, value: ir.Value) -> None:
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _with_supported_operands(op: ir.Operation, machine: Machine) -> ir.Operation:
    """Widen 8-bit floats where the target multiplies none, or not these two together."""
    a, b, acc = op.operands
    kinds = [str(v.type.element_type) for v in (a, b)]
    if not any(kind.startswith("f8") for kind in kinds):
        return op
    native = machine.capability >= 89 and all(kind in ("f8E5M2", "f8E4M3FN") for kind in kinds)
    if native:
        return op
    build = Builder.before(op)
    element = next((v.type.element_type for v in (a, b) if v.type.element_type.width != 8), ir.F16Type.get(op.context))
    new = _dot(build, op, _convert(build, a, element), _convert(build, b, element), acc)
    _replace(op, new.results[0])
    return new


def _with_wide_accumulator(op: ir.Operation) -> ir.Operation:
    """Accumulate in f32 where the instruction has no narrower accumulator."""
    a, b, acc = op.operands
    narrow = str(acc.type.element_type)
    if narrow not in ("f16", "bf16") or (narrow == "f16" and str(a.type.element_type) == "f16"):
        return op
    build = Builder.before(op)
    new = _dot(build, op, a, b, _convert(build, acc, ir.F32Type.get(op.context)))
    _replace(op, _convert(build, new.results[0], acc.type.element_type))
    return new


def _into_accumulator(op: ir.Operation) -> ir.Operation:
    """Turn dot(a, b, 0) + c, its only use, into dot(a, b, c)."""
    result = op.results[0]
    if not is_zero(op.operands[2]) or use_count(result) != 1:
        return op
    add = next(iter(result.uses)).owner.operation
    if add.name not in ("arith.addf", "arith.addi") or add.block != op.block:
        return op
    other = add.operands[1] if add.operands[0] == result else add.operands[0]
    new = _dot(Builder.before(add), op, op.operands[0], op.operands[1], other)
    _replace(add, new.results[0])
    op.erase()
    return new


def _split(op: ir.Operation, precision: str) -> None:
    """Replace a dot of f32 by dots of the terms of its operands."""
    build = Builder.before(op)
    a, b, acc = op.operands
    split = _tf32_terms if precision == "tf32x3" else _bf16_terms
    terms_a, terms_b = (split(build, v, _TERMS[precision]) for v in (a, b))
    inner = "tf32" if precision == "tf32x3" else "ieee"
    total = zeros(build, acc.type)
    *small, (i, j) = _PRODUCTS[precision]
    for x, y in small:
        total = _dot(build, op, terms_a[x], terms_b[y], total, inner).results[0]
    total = _without_nan(build, total)
    if not is_zero(acc):
        total = build.binary("arith.addf", total, acc)
    _replace(op, _dot(build, op, terms_a[i], terms_b[j], total, inner).results[0])


def _without_nan(build: Builder, value: ir.Value) -> ir.Value:
    context = value.context
    i1 = ir.IntegerType.get_signless(1, context)
    uno = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), 14)
    is_nan = build.value("arith.cmpf", tensor_type(value.type, i1), [value, value], {"predicate": uno})
    return build.value("arith.select", value.type, [is_nan, zeros(build, value.type), value])


def _tf32_terms(build: Builder, value: ir.Value, _: int) -> list[ir.Value]:
    i32 = ir.IntegerType.get_signless(32, value.context)
    bits = build.value("arith.bitcast", tensor_type(value.type, i32), [value])
    attr = ir.DenseElementsAttr.get_splat(bits.type, ir.IntegerAttr.get(i32, _TF32_MASK - (1 << 32)))
    mask = build.value("arith.constant", bits.type, [], {"value": attr})
    high = build.value("arith.bitcast", value.type, [build.binary("arith.andi", bits, mask)])
    return [high, build.binary("arith.subf", value, high)]


def _bf16_terms(build: Builder, value: ir.Value, count: int) -> list[ir.Value]:
    bf16, terms = ir.BF16Type.get(value.context), []
    for i in range(count):
        term = _convert(build, value, bf16)
        terms.append(term)
        if i + 1 < count:
            value = build.binary("arith.subf", value, _convert(build, term, ir.F32Type.get(value.context)))
    return terms
