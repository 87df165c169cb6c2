"""`tile-pointer-boxes`: loads through pointers that are boxes of strided arrays become loads by TMA.

Before: plain pointers, those that loops advance as scalars (`tile-scalarize-pointers`).
After, on targets with wgmma: where all that the wgmmas of a loop take from memory through pointers are boxes (`analysis.boxes`), those
loads are `tile.descriptor_load`s, transposed where the contiguous dimension is not the last, of descriptors that the host makes: further
arguments of the kernel (`add_descriptor`). So are boxes that the kernel's wgmmas take from outside of such loops. Loops carry no pointers
that nobody uses any more.

The descriptors come with conditions on the arguments. Where one does not hold, the runtime launches the kernel as compiled without TMA.

TMA does not see what the kernel itself has written before, so what the kernel may write is loaded as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from tilewright.compiler.analysis.affine import Forms, Remainder
from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.analysis.boxes import Box, Dimension, box_of
from tilewright.compiler.analysis.dot_plan import plan_dot
from tilewright.compiler.analysis.loop_slice import GLOBAL_WRITES, Loop, base_argument, is_cheap
from tilewright.compiler.analysis.machine import Machine
from tilewright.compiler.analysis.polynomial import Polynomial
from tilewright.compiler.analysis.tree import key
from tilewright.compiler.layouts.descriptors import tma_layout
from tilewright.dialects import tile

from .building import Builder, collect, i32_array, i32_attr, is_public, is_zero, walk
from .descriptor_arguments import add_descriptor, told_element
from .registry import register

#: Where nothing bounds a dimension of an array.
_UNBOUNDED = 1 << 31
_MIN_ROW_BYTES = 16


@register("tile-pointer-boxes", only_for=("tile.dot", "tile.dot_scaled"))
def pointer_boxes(module: ir.Operation, *, target: str = "cuda:80", num_warps: int = 4, num_ctas: int = 1) -> None:
    """Run on a module; see the file's docstring."""
    machine = Machine(target, num_warps, 32, num_ctas)
    if not machine.has_tma or num_ctas > 1:
        return
    for function in collect(module, "func.func"):
        if is_public(function):
            _rewrite(function, machine)


def _rewrite(function: ir.Operation, machine: Machine) -> None:
    ops = list(walk(function))
    loads = _operands_in_memory(ops, machine)
    loops = {key(load.parent.operation): load.parent.operation for load in loads if load.parent.name == "scf.for"}
    if not loops:
        return
    written = {base_argument(op.operands[0]) for op in ops if op.name in GLOBAL_WRITES}
    if None in written:
        return
    forms = Forms(function)
    boxes = [_box(forms, load, written, machine) for load in loads]
    parents = [key(load.parent.operation) for load in loads]
    failed = {parent for parent, box in zip(parents, boxes, strict=True) if box is None}
    if not loops.keys() - failed:
        return
    made: dict[tuple, ir.Value] = {}
    for load, box, parent in zip(loads, boxes, parents, strict=True):
        if box is not None and (parent not in loops or parent not in failed):
            _load(function, forms, load, box, made)
    for loop in loops.values():
        _drop_carried(loop)
    for op in reversed(list(walk(function))):
        if is_cheap(op.name) and not any(True for result in op.results for _ in result.uses):
            op.erase()


def _operands_in_memory(ops: list[ir.Operation], machine: Machine) -> list[ir.Operation]:
    """Return the loads through pointers that wgmmas use, in program order."""
    loads = [op for op in ops if op.name == "tile.load" and isinstance(op.results[0].type, ir.RankedTensorType)]
    return [load for load in loads if any(_is_wgmma(user, machine) for user, _ in _users(load.results[0]))]


def _is_wgmma(op: ir.Operation, machine: Machine) -> bool:
    return op.name == "tile.dot" and plan_dot(op, machine).kind == "wgmma"


def _users(value: ir.Value, order: tuple[int, ...] | None = None) -> Iterator[tuple[ir.Operation, int | None]]:
    """Yield the operations that use a value, as it is or transposed, each with the dimension of the value that is K there (None: it is no
    operand of a dot). `order`: the dimensions of what `value` was made of by transposition."""
    order = order or tuple(range(value.type.rank))
    for use in value.uses:
        user = use.owner.operation
        if user.name == "tile.trans":
            yield from _users(user.results[0], tuple(order[d] for d in ir.DenseI32ArrayAttr(user.attributes["order"])))
        else:
            yield user, order[1 - use.operand_number] if user.name == "tile.dot" and use.operand_number < 2 else None


def _box(forms: Forms, load: ir.Operation, written: set[ir.Value | None], machine: Machine) -> Box | None:
    """Return the box that a load covers if TMA can load it in its place, or None."""
    pointer, *rest = load.operands
    mask = rest[0] if rest else None
    type_ = load.results[0].type
    if "is_volatile" in load.attributes or (len(rest) > 1 and not is_zero(rest[1])):
        return None
    base = base_argument(pointer)
    if base is None or base in written:
        return None
    size = element_bytes(type_.element_type)
    box = box_of(forms, pointer, mask, size)
    if box is None:
        return None
    for user, axis in _users(load.results[0]):
        # wgmma reads types of other than 16 bits as TMA leaves them if they are contiguous along K.
        if axis is None or not _is_wgmma(user, machine) or (size != 2 and axis != box.dimensions[-1].axis):
            return None
    shape = tuple(dim.size for dim in box.dimensions)
    return box if shape[-1] * size >= _MIN_ROW_BYTES and tma_layout(shape, 8 * size, True) is not None else None


# Rewriting


def _load(function: ir.Operation, forms: Forms, load: ir.Operation, box: Box, made: dict[tuple, ir.Value]) -> None:
    """Load by a descriptor."""
    type_ = load.results[0].type
    shape = tuple(dim.size for dim in box.dimensions)
    recipe = _recipe(forms, box, type_.element_type, load.context)
    identity = (shape, str(ir.DictAttr.get(recipe, load.context)))
    if identity not in made:
        made[identity] = add_descriptor(function, tile.desc_type(shape, type_.element_type), recipe, load.location)
    build = Builder.before(load)
    coordinates = [_scalar(forms, dim.coordinate, build) for dim in box.dimensions]
    hints = {name: load.attributes[name] for name in ("cache", "evict") if name in load.attributes}
    block = ir.RankedTensorType.get(shape, type_.element_type)
    value = build.value("tile.descriptor_load", block, [made[identity], *coordinates], hints)
    own = [dim for dim in box.dimensions if dim.axis is not None]
    if len(own) < len(shape):
        value = build.value("tile.reshape", ir.RankedTensorType.get([dim.size for dim in own], type_.element_type), [value])
    order = [next(i for i, dim in enumerate(own) if dim.axis == axis) for axis in range(len(own))]
    if order != sorted(order):
        value = build.value("tile.trans", type_, [value], {"order": i32_array(order, load.context)})
    load.results[0].replace_all_uses_with(value)
    load.erase()


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
