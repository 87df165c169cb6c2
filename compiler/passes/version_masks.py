"""`tilegpu-version-masks`: masks of values only in the iterations that need them.

Before: a loop around matrix products selects by a mask, the comparison of a range of rows with a range of columns, say (causal
attention). Where the body's block lies, a comparison of scalars may tell that the mask is true everywhere.
After: what depends on the select, up to the first use by anything but arithmetic, stands in both branches of an `scf.if` on that
comparison: without the mask where it is true everywhere, as it was where it may not be.

In the first branch a maximum of products with one positive scalar is that scalar times the maximum, which gives the same bits: rounding
keeps the order. That the scalar is positive is one more condition of the branch. What is left of the products is one fma with what is
subtracted from them.

    s = select(mask, x * c, -big)                 if the mask is all true and 0 < c < inf:
    m = max(m0, max(s))                   ->          m = max(m0, max(x) * c); p = exp2(x * c - m)
    p = exp2(s - m)                               else:
                                                      as before
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from mlir import ir

from tilewright.compiler.analysis.loop_slice import is_cheap
from tilewright.compiler.analysis.mask_bounds import Bounds, Comparison, true_everywhere
from tilewright.compiler.analysis.tree import key

from .building import Builder, Values, collect, defining
from .registry import register

#: Products that leave registers for values of both branches; those of mma.sync have their operands there, and would spill.
_PRODUCTS = ("tilegpu.wgmma",)
_SHAPE_OPS = frozenset({"tile.broadcast", "tile.expand_dims", "tile.splat"})
_MAXIMA = frozenset({"arith.maxnumf", "arith.maximumf"})
#: More operations than this are not written twice.
_MAX_OPS = 100
_OGT, _OLT = 2, 4


@register("tilegpu-version-masks", only_for=("arith.select",))
def version_masks(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    loops = {}
    for op in collect(module, *_PRODUCTS):
        if op.parent.name in ("scf.for", "scf.while"):
            loops[key(op.parent.operation)] = op.parent.operation
    for loop in loops.values():
        for region in loop.regions:
            for block in region.blocks:
                version = _version(block)
                if version is not None:
                    _rewrite(version)


@dataclass
class _Version:
    """What is to stand in both branches, in program order, the operation in front of which they will be, and the selects that go, with
    what their masks need."""

    ops: list[ir.Operation]
    place: ir.Operation
    masks: dict[int, list[Comparison]] = field(default_factory=dict)

    @property
    def results(self) -> set[ir.Value]:
        """What the branches compute; conditions cannot be made of it."""
        return {r for op in self.ops for r in op.results}


def _version(block: ir.Block) -> _Version | None:
    """Find the first select in a block that may go, and what depends on it."""
    ops = [o.operation for o in block.operations]
    first, needs = next(((i, c) for i, op in enumerate(ops) if (c := _unmasked(op))), (None, None))
    if first is None:
        return None
    inside = {key(ops[first])}
    made = set(ops[first].results)
    # What comes of products that are waited for later: the wait must not come to stand in front of the branch.
    awaited: set[ir.Value] = set()
    place = None
    for op in ops[first + 1 :]:
        is_awaited = any(v in awaited for v in op.operands)
        if not any(v in made for v in op.operands):
            if is_awaited or op.name == "tilegpu.wgmma_wait":
                awaited.update(op.results)
            continue
        if not (is_cheap(op.name) or op.name == "tile.reduce") or _captures(op, made) or is_awaited:
            place = op
            break
        inside.add(key(op))
        made.update(op.results)
    if place is None:
        return None
    version = _Version([], place, {key(ops[first]): needs})
    ops = ops[: next(i for i, op in enumerate(ops) if op == place)]
    _without_late_shapes(ops, inside)
    _with_sources(ops, inside)
    version.ops = [op for op in ops if key(op) in inside]
    if any(v in awaited for v in place.operands):
        # The branch stands as early as it can, so that the wait stays behind it.
        last = next(i for i, op in enumerate(ops) if op == version.ops[-1])
        version.place = [*ops, place][last + 1]
    own = version.results
    for op in version.ops:
        needs = _unmasked(op)
        if needs is not None and own.isdisjoint(v for c in needs for side in (c.left, c.right) for v, _ in side.terms):
            version.masks[key(op)] = needs
    return version if len(version.ops) <= _MAX_OPS else None


def _unmasked(op: ir.Operation) -> list[Comparison] | None:
    """Return when the mask of a select of tensors is true everywhere, if comparisons of scalars can tell."""
    if op.name != "arith.select" or not isinstance(op.operands[0].type, ir.RankedTensorType):
        return None
    return true_everywhere(op.operands[0])


def _captures(op: ir.Operation, values: set[ir.Value]) -> bool:
    return any(v in values for r in op.regions for b in r.blocks for o in b.operations for v in o.operation.operands)


def _without_late_shapes(ops: list[ir.Operation], inside: set[int]) -> None:
    """Drop what only repeats or widens a small tensor for users outside: the small one crosses the branches instead."""
    for op in reversed(ops):
        if (
            key(op) in inside
            and (op.name in _SHAPE_OPS or _widens(op))
            and not any(key(u.owner.operation) in inside for u in op.results[0].uses)
        ):
            inside.discard(key(op))


def _widens(op: ir.Operation) -> bool:
    if op.name != "tile.fp_to_fp" or not isinstance(op.results[0].type, ir.RankedTensorType):
        return False
    return op.operands[0].type.element_type.width < op.results[0].type.element_type.width


def _with_sources(ops: list[ir.Operation], inside: set[int]) -> None:
    """Add the tensors that are operands of nothing but operations inside; the condition needs scalars."""
    for op in reversed(ops):
        if key(op) in inside or not is_cheap(op.name) or not all(isinstance(r.type, ir.RankedTensorType) for r in op.results):
            continue
        users = [key(u.owner.operation) for r in op.results for u in r.uses]
        if users and all(u in inside for u in users):
            inside.add(key(op))


# The branches


def _rewrite(version: _Version) -> None:
    build = Builder.before(version.place)
    own = {key(op) for op in version.ops}
    results = [r for op in version.ops for r in op.results if any(key(u.owner.operation) not in own for u in r.uses)]
    late = _late(version, set(results), own)
    conditions = _Conditions(build)
    for needs in version.masks.values():
        for comparison in needs:
            conditions.holds(comparison)
    scales = _positive_scales(version)
    for scale in scales:
        conditions.is_positive(scale)
    branch = build.op("scf.if", [r.type for r in results], [conditions.all()], regions=2)
    for old, new in zip(results, branch.results, strict=True):
        for use in list(old.uses):
            if key(use.owner.operation) not in own:
                use.owner.operation.operands[use.operand_number] = new
    fast, slow = (region.blocks.append() for region in branch.regions)
    inside = Builder(ir.InsertionPoint(fast), build.loc)
    values: Values = {}
    for op in version.ops:
        _clone_unmasked(inside, op, version, scales, values)
    inside.op("scf.yield", [], [values[r] for r in results])
    for op in version.ops:
        slow.append(op)
    Builder(ir.InsertionPoint(slow), build.loc).op("scf.yield", [], results)
    for op in late:
        op.move_before(version.place)


def _late(version: _Version, results: set[ir.Value], own: set[int]) -> list[ir.Operation]:
    """Return the operations in front of the place that use results of the branches: they have to follow these."""
    made, out = set(results), []
    block = version.place.block
    for op in block.operations:
        op = op.operation
        if op == version.place:
            return out
        if key(op) not in own and any(v in made for v in op.operands):
            out.append(op)
            made.update(op.results)
    return out


def _clone_unmasked(build: Builder, op: ir.Operation, version: _Version, scales: list[ir.Value], values: Values) -> None:
    """Copy an operation to the branch without masks, where `scales` are positive."""
    if key(op) in version.masks:
        values[op.results[0]] = values.get(op.operands[1], op.operands[1])
        return
    if op.name == "tile.reduce" and _is_maximum(op):
        product = defining(values.get(op.operands[0], op.operands[0]))
        found = _scaled(product)
        if found is not None and found[1] in scales:
            factor, scale = found
            smaller = op.clone(ip=build.ip)
            smaller.operands[0] = factor
            like = smaller.results[0].type
            values[op.results[0]] = build.binary("arith.mulf", smaller.results[0], build.splat(scale, like))
            return
    build.clone(op, values)


def _positive_scales(version: _Version) -> list[ir.Value]:
    """Return the scalars that maxima of the branch without masks are to be multiplied by instead of their operands."""
    out, own = [], version.results
    for op in version.ops:
        if op.name != "tile.reduce" or not _is_maximum(op):
            continue
        source = defining(op.operands[0])
        while source is not None and key(source) in version.masks:
            source = defining(source.operands[1])
        found = _scaled(source)
        if found is not None and found[1] not in own and found[1] not in out:
            out.append(found[1])
    return out


def _is_maximum(reduce: ir.Operation) -> bool:
    body = [o.operation for o in reduce.regions[0].blocks[0].operations]
    if len(reduce.operands) != 1 or len(body) != 2 or body[0].name not in _MAXIMA:
        return False
    return set(body[0].operands) == set(reduce.regions[0].blocks[0].arguments)


def _scaled(op: ir.Operation | None) -> tuple[ir.Value, ir.Value] | None:
    """Return (factor, scalar) if an operation multiplies a tensor by a scalar."""
    if op is None or op.name != "arith.mulf" or not isinstance(op.results[0].type, ir.RankedTensorType):
        return None
    for factor, other in (op.operands, reversed(list(op.operands))):
        splat = defining(other)
        if splat is not None and splat.name == "tile.splat":
            return factor, splat.operands[0]
    return None


class _Conditions:
    """Builds the condition of the branch."""

    def __init__(self, build: Builder):
        self.build = build
        self.parts: list[ir.Value] = []

    def holds(self, comparison: Comparison) -> None:
        sides = (comparison.left, comparison.right)
        type_ = next((v.type for side in sides for v, _ in side.terms), None)
        if type_ is None:
            type_ = ir.IntegerType.get_signless(64, self.build.loc.context)
        left, right = (self._sum(side, type_) for side in sides)
        self.parts.append(self._compare("arith.cmpi", comparison.predicate, left, right))

    def is_positive(self, scale: ir.Value) -> None:
        for predicate, limit in ((_OGT, 0.0), (_OLT, inf)):
            constant = self.build.value("arith.constant", scale.type, [], {"value": ir.FloatAttr.get(scale.type, limit)})
            self.parts.append(self._compare("arith.cmpf", predicate, scale, constant))

    def all(self) -> ir.Value:
        result = self.parts[0]
        for part in self.parts[1:]:
            result = self.build.binary("arith.andi", result, part)
        return result

    def _sum(self, side: Bounds, type_: ir.Type) -> ir.Value:
        total = self.build.integer(type_, side.low)
        for value, factor in side.terms:
            term = value if factor == 1 else self.build.binary("arith.muli", value, self.build.integer(type_, factor))
            total = self.build.binary("arith.addi", total, term)
        return total

    def _compare(self, name: str, predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
        context = self.build.loc.context
        attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), predicate)
        return self.build.value(name, ir.IntegerType.get_signless(1, context), [a, b], {"predicate": attribute})
