"""`tile-pointer-boxes`: loads and stores through pointers that are boxes of strided arrays become TMA's.

Before: plain pointers, those that loops advance as scalars (`tile-scalarize-pointers`).
After, on targets with wgmma: the loads and stores that `box_accesses` chooses are `tile.descriptor_load`s, transposed where the contiguous
dimension is not the last, and `tile.descriptor_store`s, of descriptors that the host makes: further arguments of the kernel
(`add_descriptor`). Loops carry no pointers that nobody uses any more.

The descriptors come with conditions on the arguments. Where one does not hold, the runtime launches the kernel as compiled without TMA.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilewright.compiler.analysis.affine import Forms, Remainder
from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.analysis.boxes import Box, Dimension
from tilewright.compiler.analysis.loop_slice import Loop, is_cheap
from tilewright.compiler.analysis.machine import Machine
from tilewright.compiler.analysis.polynomial import Polynomial
from tilewright.dialects import tile

from .box_accesses import box_accesses
from .building import Builder, collect, i32_array, i32_attr, is_public, walk
from .descriptor_arguments import add_descriptor, told_element
from .registry import register

#: Where nothing bounds a dimension of an array.
_UNBOUNDED = 1 << 31


@register("tile-pointer-boxes", only_for=("tile.dot", "tile.dot_scaled"))
def pointer_boxes(module: ir.Operation, *, target: str = "cuda:80", num_warps: int = 4) -> None:
    """Run on a module; see the file's docstring."""
    machine = Machine(target, num_warps)
    if not machine.has_tma:
        return
    for function in collect(module, "func.func"):
        if is_public(function):
            _rewrite(function, machine)


def _rewrite(function: ir.Operation, machine: Machine) -> None:
    forms = Forms(function)
    chosen = box_accesses(list(walk(function)), forms, machine)
    if not chosen.loads:
        return
    descriptors = _Descriptors(function, forms)
    for load, box in chosen.loads:
        _load(load, box, descriptors)
    for store, box in chosen.stores:
        _store(store, box, descriptors)
    for loop in chosen.loops:
        _drop_carried(loop)
    for op in reversed(list(walk(function))):
        if is_cheap(op.name) and not any(True for result in op.results for _ in result.uses):
            op.erase()


class _Descriptors:
    """The descriptors of one kernel; equal ones are one argument."""

    def __init__(self, function: ir.Operation, forms: Forms):
        self.function = function
        self.forms = forms
        self.made: dict[tuple, ir.Value] = {}

    def operands(self, box: Box, element: ir.Type, stores: bool, build: Builder) -> list[ir.Value]:
        """Return the descriptor of a box's array, and the coordinates of the box."""
        recipe = _recipe(self.forms, box, element, self.function.context)
        if stores:
            recipe["stores"] = ir.UnitAttr.get(self.function.context)
        shape = tuple(dim.size for dim in box.dimensions)
        identity = shape, str(ir.DictAttr.get(recipe, self.function.context))
        if identity not in self.made:
            self.made[identity] = add_descriptor(self.function, tile.desc_type(shape, element), recipe, build.loc)
        return [self.made[identity], *(_scalar(self.forms, dim.coordinate, build) for dim in box.dimensions)]


def _load(load: ir.Operation, box: Box, descriptors: _Descriptors) -> None:
    """Load by a descriptor."""
    type_, build = load.results[0].type, Builder.before(load)
    hints = {"evict": load.attributes["evict"]} if "evict" in load.attributes else {}
    operands = descriptors.operands(box, type_.element_type, False, build)
    value = build.value("tile.descriptor_load", _block_type(box, type_.element_type), operands, hints)
    own = [dim for dim in box.dimensions if dim.axis is not None]
    if len(own) < len(box.dimensions):
        value = build.value("tile.reshape", ir.RankedTensorType.get([dim.size for dim in own], type_.element_type), [value])
    order = [next(i for i, dim in enumerate(own) if dim.axis == axis) for axis in range(len(own))]
    if order != sorted(order):
        value = build.value("tile.trans", type_, [value], {"order": i32_array(order, load.context)})
    load.results[0].replace_all_uses_with(value)
    load.erase()


def _store(store: ir.Operation, box: Box, descriptors: _Descriptors) -> None:
    """Store by a descriptor."""
    value, build = store.operands[1], Builder.before(store)
    element = value.type.element_type
    descriptor, *coordinates = descriptors.operands(box, element, True, build)
    if value.type.rank < len(box.dimensions):
        value = build.value("tile.reshape", _block_type(box, element), [value])
    build.op("tile.descriptor_store", [], [descriptor, value, *coordinates])
    store.erase()


def _block_type(box: Box, element: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get([dim.size for dim in box.dimensions], element)


def _recipe(forms: Forms, box: Box, element: ir.Type, context: ir.Context) -> dict[str, ir.Attribute]:
    """Return how the host makes the descriptor of a box (see `add_descriptor`)."""

    def texts(strings: Sequence[str]) -> ir.Attribute:
        return ir.ArrayAttr.get([ir.StringAttr.get(text, context) for text in strings], context)

    def extent(dim: Dimension) -> str:
        return str(_UNBOUNDED) if dim.extent is None else forms.text(dim.extent)

    address = f"a{box.argument.arg_number}"
    if box.base.terms:
        address = f"({address} + {element_bytes(element)} * {forms.text(box.base)})"
    return {
        "base": ir.StringAttr.get(address, context),
        "shape": texts([extent(dim) for dim in box.dimensions]),
        "strides": texts([forms.text(dim.stride) for dim in box.dimensions[:-1]]),
        "padding": ir.StringAttr.get("zero", context),
        "element": ir.StringAttr.get(told_element(element), context),
        "argument": i32_attr(box.argument.arg_number, context),
        "conditions": texts(box.conditions),
    }


def _scalar(forms: Forms, polynomial: Polynomial, build: Builder) -> ir.Value:
    """Compute a polynomial in 32 bits; what changes in the innermost loop is added last, so that the rest can leave it."""
    i32 = ir.IntegerType.get_signless(32, build.loc.context)
    terms = sorted(polynomial.terms, key=lambda term: max((_depth(forms.unknowns[n]) for n in term[0]), default=0))
    total = None
    for monomial, coefficient in terms:
        product = None
        for number in monomial:
            factor = _unknown(forms, forms.unknowns[number], build)
            product = factor if product is None else build.binary("arith.muli", product, factor)
        if product is None:
            product = build.integer(i32, coefficient)
        elif coefficient != 1:
            product = build.binary("arith.muli", product, build.integer(i32, coefficient))
        total = product if total is None else build.binary("arith.addi", total, product)
    return build.integer(i32, 0) if total is None else total


def _unknown(forms: Forms, thing: ir.Value | Remainder, build: Builder) -> ir.Value:
    if isinstance(thing, Remainder):
        parts = [_scalar(forms, part, build) for part in (thing.dividend, thing.divisor)]
        return build.binary("arith.remsi", *parts)
    i32 = ir.IntegerType.get_signless(32, build.loc.context)
    if thing.type == i32:
        return thing
    narrower = isinstance(thing.type, ir.IntegerType) and thing.type.width < 32
    return build.value("arith.extsi" if narrower else "arith.trunci", i32, [thing])


def _depth(thing: ir.Value | Remainder) -> int:
    """Return how many loops lie around where an unknown is made."""
    if isinstance(thing, Remainder):
        return 0
    owner = thing.owner
    op = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation.parent.operation
    depth = 0
    while op.name != "func.func":
        depth += op.name == "scf.for"
        op = op.parent.operation
    return depth


def _drop_carried(op: ir.Operation) -> None:
    """Rebuild a loop without the carried values that only serve to make themselves."""
    loop = Loop(op)
    live, kept = loop.live(set())
    if len(kept) == len(loop.args):
        return
    carried = sorted(kept)
    inits = [loop.inits[i] for i in carried]
    types = [v.type for v in inits]
    build = Builder.before(op)
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = build.op("scf.for", types, [loop.lower, loop.upper, loop.step, *inits], attributes, regions=1)
    block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[op.location] * (len(types) + 1))
    yields = [loop.yields[i] for i in carried]
    for position in sorted(live):
        block.append(loop.ops[position])
    Builder(ir.InsertionPoint(block), op.location).op("scf.yield", [], yields)
    for old, value in zip([loop.iv, *(loop.args[i] for i in carried)], block.arguments, strict=True):
        old.replace_all_uses_with(value)
    for i, result in zip(carried, new.results, strict=True):
        op.results[i].replace_all_uses_with(result)
    op.erase()
