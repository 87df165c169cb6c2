"""Axis info: what is known of the integers and pointers in a tensor along each of its dimensions.

For each dimension d of a value, over all positions in the other dimensions:

- `contiguity[d]`: aligned runs of this many elements along d hold consecutive values (x, x+1, …; for pointers consecutive elements);
- `divisibility[d]`: the first value of each such run is a multiple of this (bytes for pointers);
- `constancy[d]`: aligned runs of this many elements along d hold one value;
- `constant`: the value of every element, if it is known at compile time.

All numbers are powers of two, so the greatest common divisor of two of them is the smaller one. A scalar has rank 1 here.
As in the hardware's C semantics, index arithmetic is taken not to overflow, and the dividend of `%` and `//` not to be negative: `(pid * B
+ arange) % M` keeps runs as long as the divisor's divisibility allows.

`analyze` is one walk in program order; loops repeat their body until the carried values settle, which the length of a chain of
powers of two bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mlir import ir

from tilewright.dialects import tile

_MAX = 1 << 30  # what zero is divisible by

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AxisInfo:
    """What is known of one value; see the module's docstring."""

    contiguity: Dims
    divisibility: Dims
    constancy: Dims
    constant: int | None = None

    @property
    def rank(self) -> int:
        return len(self.contiguity)

    def first_divisibility(self, dim: int, run: int) -> int:
        """Return what the first values of aligned runs of `run` elements along `dim` are multiples of (for pointers a sound lower
        bound)."""
        return self.divisibility[dim] if run >= self.contiguity[dim] else min(self.divisibility[dim], run)


def unknown(rank: int) -> AxisInfo:
    """Return the info of a value about which nothing is known."""
    one = (1,) * rank
    return AxisInfo(one, one, one)


def uniform(shape: Sequence[int], divisibility: int, constant: int | None = None) -> AxisInfo:
    """Return the info of one value repeated over `shape`."""
    rank = len(shape)
    return AxisInfo((1,) * rank, (divisibility,) * rank, tuple(shape), constant)


def meet(a: AxisInfo, b: AxisInfo) -> AxisInfo:
    """Return what holds for both."""
    contiguity = tuple(map(min, a.contiguity, b.contiguity))
    divisibility = tuple(min(x.first_divisibility(d, c) for x in (a, b)) for d, c in enumerate(contiguity))
    constant = a.constant if a.constant == b.constant else None
    return AxisInfo(contiguity, divisibility, tuple(map(min, a.constancy, b.constancy)), constant)


def low_bit(value: int) -> int:
    """Return the largest power of two that divides `value`."""
    return min(value & -value, _MAX) if value else _MAX


class AxisAnalysis:
    """The result of `analyze`: look-up of the info of a value, and of the widest access that it allows."""

    def __init__(self) -> None:
        self.infos: dict[ir.Value, AxisInfo] = {}

    def get(self, value: ir.Value) -> AxisInfo:
        """Return the info of `value`; of values that were not reached, that nothing is known."""
        info = self.infos.get(value)
        return info if info is not None else unknown(_rank(value.type))

    def access_width(self, pointer: ir.Value, mask: ir.Value | None, dim: int, max_bytes: int = 16) -> int:
        """Return how many neighbouring elements along `dim` one access through the pointer tensor may cover: they are consecutive in
        memory, aligned to their total size, under one mask bit, and at most `max_bytes`."""
        info = self.get(pointer)
        size = element_bytes(tile.pointee(_element(pointer.type)))
        if info.rank == 0 or dim >= info.rank:
            return 1
        width = min(info.contiguity[dim], max(1, info.divisibility[dim] // size), max(1, max_bytes // size))
        if mask is not None:
            width = min(width, self.get(mask).constancy[dim])
        return width


def element_bytes(elem: ir.Type) -> int:
    """Return the number of bytes of an element in memory; an i1 takes one byte, a pointer eight."""
    if isinstance(elem, ir.IndexType) or tile.is_ptr(elem):
        return 8
    return max(1, elem.width // 8)


def analyze(function: ir.Operation) -> AxisAnalysis:
    """Analyze one function."""
    analysis = AxisAnalysis()
    for block in function.regions[0].blocks:
        arg_attrs = _argument_attributes(function)
        for i, arg in enumerate(block.arguments):
            div = 1
            if i < len(arg_attrs) and "tile.divisibility" in arg_attrs[i]:
                div = low_bit(ir.IntegerAttr(arg_attrs[i]["tile.divisibility"]).value)
            analysis.infos[arg] = uniform(_shape(arg.type), div) if _rank(arg.type) == 1 and div > 1 else unknown(_rank(arg.type))
        _block(block, analysis.infos)
    return analysis


def _argument_attributes(function: ir.Operation) -> Sequence[ir.DictAttr]:
    if "arg_attrs" not in function.attributes:
        return ()
    return [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]


def _element(type_: ir.Type) -> ir.Type:
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


def _shape(type_: ir.Type) -> Dims:
    return tuple(type_.shape) if isinstance(type_, ir.RankedTensorType) else (1,)


def _rank(type_: ir.Type) -> int:
    return type_.rank if isinstance(type_, ir.RankedTensorType) else 1


Infos = dict[ir.Value, AxisInfo]


def _block(block: ir.Block, infos: Infos) -> None:
    """Analyze the operations of a block in order."""
    for op in block.operations:
        op = op.operation
        region_rule = _REGION_RULES.get(op.name)
        if region_rule is not None:
            region_rule(op, infos)
            continue
        results = op.results
        if len(results) != 1:
            for result in results:
                infos[result] = unknown(_rank(result.type))
            continue
        result = results[0]
        rule = _RULES.get(op.name)
        if rule is None:
            info = unknown(_rank(result.type))
        else:
            info = rule(op, [infos.get(v) or unknown(_rank(v.type)) for v in op.operands], _shape(result.type))
        attributes = op.attributes
        for hint in _HINTS:
            if hint in attributes:
                info = _with_hint(info, hint, list(ir.DenseI32ArrayAttr(attributes[hint])))
        infos[result] = info


# Hints


_HINTS = {"tile.contiguity": "contiguity", "tile.divisibility": "divisibility", "tile.constancy": "constancy"}


def _with_hint(info: AxisInfo, hint: str, values: list[int]) -> AxisInfo:
    """Raise `info` to what the user promises; a promise that does not fit the rank is ignored."""
    if len(values) != info.rank:
        return info
    field = _HINTS[hint]
    promised = tuple(max(old, low_bit(new)) for old, new in zip(getattr(info, field), values, strict=True))
    return replace(info, **{field: promised})


# Control flow


def _settle(args: Sequence[ir.Value], initial: Sequence[AxisInfo], body: Callable[[], Sequence[ir.Value]], infos: Infos) -> list[AxisInfo]:
    """Evaluate `body` under growing uncertainty about `args` until what it yields is covered by what was assumed."""
    current = list(initial)
    while True:
        for arg, info in zip(args, current, strict=True):
            infos[arg] = info
        yielded = [infos.get(v) or unknown(_rank(v.type)) for v in body()]
        merged = [meet(a, b) for a, b in zip(current, yielded, strict=True)]
        if merged == current:
            return current
        current = merged


def _for(op: ir.Operation, infos: Infos) -> None:
    lower, _, step, *inits = op.operands
    block = op.regions[0].blocks[0]
    iv, *args = block.arguments
    div = min(infos[lower].divisibility[0] if lower in infos else 1, infos[step].divisibility[0] if step in infos else 1)
    infos[iv] = AxisInfo((1,), (div,), (1,))

    def body() -> Sequence[ir.Value]:
        _block(block, infos)
        return list(_terminator(block).operands)

    carried = _settle(args, [infos.get(v) or unknown(_rank(v.type)) for v in inits], body, infos)
    for result, info in zip(op.results, carried, strict=True):
        infos[result] = info


def _while(op: ir.Operation, infos: Infos) -> None:
    before, after = (region.blocks[0] for region in op.regions)

    def body() -> Sequence[ir.Value]:
        _block(before, infos)
        passed = list(_terminator(before).operands)[1:]
        for arg, value in zip(after.arguments, passed, strict=True):
            infos[arg] = infos.get(value) or unknown(_rank(value.type))
        _block(after, infos)
        return list(_terminator(after).operands)

    _settle(list(before.arguments), [infos.get(v) or unknown(_rank(v.type)) for v in op.operands], body, infos)
    for result, value in zip(op.results, list(_terminator(before).operands)[1:], strict=True):
        infos[result] = infos.get(value) or unknown(_rank(value.type))


def _if(op: ir.Operation, infos: Infos) -> None:
    branches = [region.blocks[0] for region in op.regions if len(region.blocks)]
    for block in branches:
        _block(block, infos)
    yields = [list(_terminator(block).operands) for block in branches]
    for i, result in enumerate(op.results):
        options = [infos.get(values[i]) or unknown(_rank(result.type)) for values in yields]
        infos[result] = options[0] if len(options) == 1 else meet(*options)


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def _roles(op: ir.Operation, infos: Infos) -> None:
    for region in op.regions:
        _block(region.blocks[0], infos)


_REGION_RULES: dict[str, Callable[[ir.Operation, Infos], None]] = {
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "tilegpu.warp_specialize": _roles,
}


# Transfer functions: (operation, infos of its operands, shape of its result) -> info of its result


Rule = Callable[[ir.Operation, list[AxisInfo], Dims], AxisInfo]
_RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        for name in names:
            _RULES[name] = rule
        return rule

    return add


def _of_constant(value: int, shape: Dims) -> AxisInfo:
    return uniform(shape, low_bit(value), value)


@_rule("arith.constant")
def _constant(op: ir.Operation, _: list[AxisInfo], shape: Dims) -> AxisInfo:
    attr = op.attributes["value"]
    if isinstance(attr, ir.IntegerAttr):
        return _of_constant(attr.value, shape)
    if isinstance(attr, ir.DenseIntElementsAttr) and attr.is_splat:
        return _of_constant(ir.IntegerAttr(attr.get_splat_value()).value, shape)
    is_splat = not isinstance(attr, ir.DenseElementsAttr) or attr.is_splat
    return uniform(shape, 1) if is_splat else unknown(len(shape))


@_rule("tile.program_id", "tile.num_programs", "tile.smid")
def _opaque_scalar(_: ir.Operation, __: list[AxisInfo], shape: Dims) -> AxisInfo:
    return unknown(len(shape))


@_rule("tile.range")
def _range(op: ir.Operation, _: list[AxisInfo], shape: Dims) -> AxisInfo:
    start = ir.IntegerAttr(op.attributes["start"]).value
    return AxisInfo(shape, (low_bit(start),), (1,))


@_rule("tile.splat")
def _splat(_: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    return uniform(shape, args[0].divisibility[0], args[0].constant)


@_rule("tile.unsplat")
def _unsplat(_: ir.Operation, args: list[AxisInfo], __: Dims) -> AxisInfo:
    return AxisInfo((1,), (max(_everywhere(args[0])),), (1,), args[0].constant)


def _everywhere(info: AxisInfo) -> Dims:
    """Return, by dimension, what its runs tell of the divisibility of every single element."""
    return tuple(info.first_divisibility(d, 1) for d in range(info.rank))


def _insert(dims: Dims, axis: int, value: int) -> Dims:
    return (*dims[:axis], value, *dims[axis:])


@_rule("tile.expand_dims")
def _expand_dims(op: ir.Operation, args: list[AxisInfo], _: Dims) -> AxisInfo:
    a, axis = args[0], ir.IntegerAttr(op.attributes["axis"]).value
    return AxisInfo(
        _insert(a.contiguity, axis, 1),
        _insert(a.divisibility, axis, max(_everywhere(a), default=1)),
        _insert(a.constancy, axis, 1),
        a.constant,
    )


@_rule("tile.broadcast")
def _broadcast(op: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    a, source = args[0], _shape(op.operands[0].type)
    stretched = [s == 1 and t > 1 for s, t in zip(source, shape, strict=True)]
    constancy = tuple(t if s else c for s, t, c in zip(stretched, shape, a.constancy, strict=True))
    return replace(a, constancy=constancy)


@_rule("tile.trans")
def _trans(op: ir.Operation, args: list[AxisInfo], _: Dims) -> AxisInfo:
    order, a = list(ir.DenseI32ArrayAttr(op.attributes["order"])), args[0]
    contiguity, divisibility, constancy = (tuple(dims[i] for i in order) for dims in (a.contiguity, a.divisibility, a.constancy))
    return AxisInfo(contiguity, divisibility, constancy, a.constant)


@_rule("tile.reshape")
def _reshape(op: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    a, source = args[0], _shape(op.operands[0].type)
    if "allow_reorder" in op.attributes:
        return unknown(len(shape)) if a.constant is None else uniform(shape, low_bit(a.constant), a.constant)
    if a.constancy == source:
        return uniform(shape, max(_everywhere(a)), a.constant)
    # Only the run along the last dimension survives, within one row of both shapes.
    rank, last = len(shape), min(shape[-1], source[-1])
    contiguity = (*(1,) * (rank - 1), min(a.contiguity[-1], last))
    divisibility = tuple(a.first_divisibility(a.rank - 1, c) for c in contiguity)
    return AxisInfo(contiguity, divisibility, (*(1,) * (rank - 1), min(a.constancy[-1], last)))


@_rule(
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
    "arith.index_cast",
    "arith.index_castui",
)
def _cast(_: ir.Operation, args: list[AxisInfo], __: Dims) -> AxisInfo:
    return args[0]


@_rule("tile.bitcast", "arith.bitcast", "tile.ptr_to_int", "tile.int_to_ptr")
def _bitcast(op: ir.Operation, args: list[AxisInfo], _: Dims) -> AxisInfo:
    a = args[0]
    source, result = _element(op.operands[0].type), _element(op.results[0].type)
    step = [element_bytes(tile.pointee(t)) if tile.is_ptr(t) else 1 for t in (source, result)]
    integers = all(tile.is_ptr(t) or isinstance(t, ir.IntegerType) for t in (source, result))
    if not integers:
        return replace(unknown(a.rank), constancy=a.constancy)
    if step[0] == step[1]:
        return a
    return AxisInfo(
        (1,) * a.rank,
        tuple(min(d, low_bit(step[0])) if c > 1 else d for c, d in zip(a.contiguity, a.divisibility, strict=True)),
        a.constancy,
    )


def _sum(a: AxisInfo, b: AxisInfo, b_scale: int, b_negated: bool, constant: int | None, shape: Dims) -> AxisInfo:
    """Return the info of a ± b·b_scale, `b_scale` being the bytes of a pointer's step (1 for integers)."""
    if constant is not None:
        return _of_constant(constant, shape)
    contiguity, divisibility = [], []
    for d in range(a.rank):
        run = min(a.contiguity[d], b.constancy[d])
        if not b_negated:
            run = max(run, min(a.constancy[d], b.contiguity[d]))
        contiguity.append(run)
        # Inside a longer run of a pointer tensor, shorter runs start at multiples of whole elements.
        of_a = a.divisibility[d] if run >= a.contiguity[d] else min(a.divisibility[d], run * b_scale)
        divisibility.append(min(of_a, min(_MAX, b.first_divisibility(d, run) * b_scale)))
    return AxisInfo(tuple(contiguity), tuple(divisibility), tuple(map(min, a.constancy, b.constancy)))


@_rule("arith.addi")
def _addi(_: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    a, b = args
    return _sum(a, b, 1, False, None if None in (a.constant, b.constant) else a.constant + b.constant, shape)


@_rule("arith.subi")
def _subi(_: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    a, b = args
    return _sum(a, b, 1, True, None if None in (a.constant, b.constant) else a.constant - b.constant, shape)


@_rule("tile.addptr")
def _addptr(op: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    return _sum(*args, low_bit(element_bytes(tile.pointee(_element(op.operands[0].type)))), False, None, shape)


def _product(a: AxisInfo, b: AxisInfo, shape: Dims) -> AxisInfo:
    if a.constant is not None and b.constant is not None:
        return _of_constant(a.constant * b.constant, shape)
    for one, other in ((a, b), (b, a)):
        if one.constant == 1:
            return other
    divisibility = tuple(min(_MAX, x * y) for x, y in zip(_everywhere(a), _everywhere(b), strict=True))
    return AxisInfo((1,) * a.rank, divisibility, tuple(map(min, a.constancy, b.constancy)))


@_rule("arith.muli")
def _muli(_: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    return _product(*args, shape)


def _quotient(a: AxisInfo, b: AxisInfo, shape: Dims) -> AxisInfo:
    if a.constant is not None and b.constant:
        return _of_constant(abs(a.constant) // abs(b.constant) * (1 if (a.constant < 0) == (b.constant < 0) else -1), shape)
    if b.constant == 1:
        return a
    constancy = []
    for d in range(a.rank):
        # A run that starts at, and a divisor that is, a multiple of g lies between two multiples of the divisor in parts of g.
        run = min(a.contiguity[d], a.divisibility[d], b.first_divisibility(d, 1), b.constancy[d])
        constancy.append(max(run, min(a.constancy[d], b.constancy[d])))
    divisor = b.constant if b.constant is not None and b.constant > 0 and b.constant & (b.constant - 1) == 0 else None
    divisibility = tuple(max(1, x // divisor) if divisor and c == 1 else 1 for x, c in zip(a.divisibility, a.contiguity, strict=True))
    return AxisInfo((1,) * a.rank, divisibility, tuple(constancy))


def _remainder(a: AxisInfo, b: AxisInfo, shape: Dims) -> AxisInfo:
    if a.constant is not None and b.constant:
        value = abs(a.constant) % abs(b.constant)
        return _of_constant(value if a.constant >= 0 else -value, shape)
    contiguity, divisibility = [], []
    for d in range(a.rank):
        of_b = b.first_divisibility(d, 1)
        contiguity.append(min(a.contiguity[d], a.divisibility[d], of_b, b.constancy[d]))
        divisibility.append(min(a.first_divisibility(d, contiguity[-1]), of_b))
    return AxisInfo(tuple(contiguity), tuple(divisibility), tuple(map(min, a.constancy, b.constancy)))


@_rule("arith.divsi", "arith.divui", "arith.floordivsi")
def _div(_: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    return _quotient(*args, shape)


@_rule("arith.remsi", "arith.remui")
def _rem(_: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    return _remainder(*args, shape)


def _power_of_two(shift: int | None, shape: Dims) -> AxisInfo | None:
    return _of_constant(1 << shift, shape) if shift is not None and 0 <= shift < 30 else None


@_rule("arith.shli")
def _shli(_: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    factor = _power_of_two(args[1].constant, shape)
    return _product(args[0], factor, shape) if factor else _pointwise(args)


@_rule("arith.shrsi", "arith.shrui")
def _shr(_: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    factor = _power_of_two(args[1].constant, shape)
    return _quotient(args[0], factor, shape) if factor else _pointwise(args)


def _pointwise(args: list[AxisInfo]) -> AxisInfo:
    """Return what holds for any function of the elements: equal arguments give equal results."""
    rank = args[0].rank
    return replace(unknown(rank), constancy=tuple(min(a.constancy[d] for a in args) for d in range(rank)))


@_rule("arith.andi")
def _andi(_: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    a, b = args
    if a.constant is not None and b.constant is not None:
        return _of_constant(a.constant & b.constant, shape)
    if b.constant is not None and b.constant > 0 and b.constant & (b.constant + 1) == 0:
        return _remainder(a, _of_constant(b.constant + 1, shape), shape)
    divisibility = tuple(map(max, _everywhere(a), _everywhere(b)))
    return replace(_pointwise(args), divisibility=divisibility)


@_rule("arith.ori", "arith.xori", "arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui")
def _choice(_: ir.Operation, args: list[AxisInfo], __: Dims) -> AxisInfo:
    return replace(_pointwise(args), divisibility=tuple(map(min, *map(_everywhere, args))))


@_rule("arith.select")
def _select(op: ir.Operation, args: list[AxisInfo], _: Dims) -> AxisInfo:
    condition, a, b = args
    both = meet(a, b)
    if condition.rank != both.rank or not isinstance(op.operands[0].type, ir.RankedTensorType):
        return both  # a scalar condition chooses between whole tensors
    contiguity = tuple(map(min, both.contiguity, condition.constancy))
    divisibility = tuple(both.first_divisibility(d, c) for d, c in enumerate(contiguity))
    return AxisInfo(contiguity, divisibility, tuple(map(min, both.constancy, condition.constancy)), both.constant)


_LESS_OR_NOT = {2, 5, 6, 9}  # slt, sge, ult, uge: x < n and its negation
_GREATER_OR_NOT = {3, 4, 7, 8}  # sle, sgt, ule, ugt: n < x and its negation


@_rule("arith.cmpi")
def _cmpi(op: ir.Operation, args: list[AxisInfo], _: Dims) -> AxisInfo:
    a, b = args
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    runs = None
    if predicate in _LESS_OR_NOT:
        runs = (a, b)
    elif predicate in _GREATER_OR_NOT:
        runs = (b, a)
    constancy = list(_pointwise(args).constancy)
    if runs is not None:
        x, n = runs
        for d in range(x.rank):
            # x runs from a multiple of g to the one before the next, n is a multiple of g: n does not part the run.
            run = min(x.contiguity[d], x.divisibility[d], n.first_divisibility(d, 1), n.constancy[d])
            constancy[d] = max(constancy[d], run)
    return replace(unknown(a.rank), constancy=tuple(constancy))


def _elementwise_default(_: ir.Operation, args: list[AxisInfo], shape: Dims) -> AxisInfo:
    return _pointwise(args) if args and all(a.rank == len(shape) for a in args) else unknown(len(shape))


for _name in ("arith.cmpf", "arith.negf", "arith.addf", "arith.mulf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui"):
    _RULES[_name] = _elementwise_default
