"""`tile-device-descriptors`: tensor descriptors that only the kernel can make become tensor maps in global memory, where that pays.

Before: `tile.make_descriptor` in kernels without calls. After, on targets whose threads can write tensor maps: where a descriptor depends
on what the kernel loads (the pointers of a grouped product), and blocks that feed dots are loaded through it in a loop that it stands in
front of, these loads use a `tile.make_descriptor` with the attribute `tile.slot` (i32): the number of its tensor map in the scratch memory
of the CTA, which is one more argument of the kernel, with the attribute `tile.scratch` (i32): bytes for each CTA. All else about
descriptors is left to `tile-host-descriptors` and `tile-lower-descriptors`.

The loop may not write global memory. In front of it stands a `tile.barrier` with the attribute `tile.fence_proxy`, so that TMA reads what
the CTA wrote before. As the language asks, base and strides are taken to be multiples of 16 bytes.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.axis_info import AxisAnalysis, analyze, element_bytes
from tilewright.compiler.analysis.host_values import host_expression
from tilewright.compiler.analysis.loop_slice import GLOBAL_WRITES, orders
from tilewright.compiler.analysis.tree import key
from tilewright.compiler.layouts.descriptors import tma_layout
from tilewright.dialects import tile

from .building import Builder, collect, i32_attr, is_public, walk
from .descriptor_arguments import FLOATS, add_argument, told_element
from .host_descriptors import recipe_of
from .registry import register

#: Attributes of a descriptor whose tensor map the kernel makes: its number, and what TMA is told of its elements.
SLOT, ELEMENT = "tile.slot", "tile.element"
#: Attribute of the argument that is the scratch memory: bytes for each CTA.
SCRATCH = "tile.scratch"
#: Attribute of a barrier that also orders plain accesses before those of TMA.
FENCE_PROXY = "tile.fence_proxy"
_MAP_BYTES = 128
_COORDINATE_BYTES = 16
_LOAD = "tile.descriptor_load"
_PASS_ON = frozenset({"tile.trans", "tile.reshape", "tile.fp_to_fp"})


@register("tile-device-descriptors", only_for=("tile.make_descriptor",))
def device_descriptors(module: ir.Operation, *, target: str = "cuda:80") -> None:
    """Run on a module; see the file's docstring."""
    if target not in ("cuda:90", "cuda:100"):
        return
    for function in collect(module, "func.func"):
        makers = collect(function, "tile.make_descriptor") if is_public(function) else []
        makers = [op for op in makers if recipe_of(op) is None and _has_box(op)]
        if makers:
            _make(function, makers)


def _make(function: ir.Operation, makers: list[ir.Operation]) -> None:
    axis = analyze(function)
    slots = 0
    fenced: set[int] = set()
    for op in makers:
        loops = {}
        for use in op.results[0].uses:
            load = use.owner.operation
            loop = _loop_of(load, op)
            if loop is not None and _tma_can(load, axis) and _feeds_dot(load):
                loops.setdefault(key(loop), (loop, []))[1].append(load)
        if not loops:
            continue
        attributes = {name: op.attributes[name] for name in op.attributes}
        attributes |= {SLOT: i32_attr(slots, op.context), ELEMENT: ir.StringAttr.get(_told(op), op.context)}
        slots += 1
        made = Builder.after(op).value("tile.make_descriptor", op.results[0].type, list(op.operands), attributes)
        for number, (loop, loads) in loops.items():
            if number not in fenced:
                fenced.add(number)
                Builder.before(loop).op("tile.barrier", [], [], {FENCE_PROXY: ir.UnitAttr.get(op.context)})
            for load in loads:
                load.operands[0] = made
    if slots:
        _add_scratch(function, slots * _MAP_BYTES)


def _has_box(op: ir.Operation) -> bool:
    """Whether TMA can copy the descriptor's blocks."""
    shape, element, _ = tile.desc_info(op.results[0].type)
    bits = 8 * element_bytes(element)
    nan = "padding" in op.attributes and "nan" in str(op.attributes["padding"])
    if nan and str(element) not in FLOATS:
        return False
    return host_expression(op.operands[-1]) == "1" and shape[-1] * bits >= 128 and tma_layout(tuple(shape), bits, True) is not None


def _told(op: ir.Operation) -> str:
    return "tf32" if "tile.round_tf32" in op.attributes else told_element(tile.desc_info(op.results[0].type)[1])


def _tma_can(load: ir.Operation, axis: AxisAnalysis) -> bool:
    """Whether TMA can do an access: see `tile-host-descriptors`."""
    if load.name != _LOAD:
        return False
    size = element_bytes(tile.desc_info(load.operands[0].type)[1])
    return axis.get(list(load.operands)[-1]).divisibility[0] * size % _COORDINATE_BYTES == 0


def _loop_of(load: ir.Operation, maker: ir.Operation) -> ir.Operation | None:
    """The outermost loop around a load that writes nothing and does not hold the maker of its descriptor."""
    loop, op = None, load
    while op.block != maker.block:
        op = op.parent.operation
        if op.name == "scf.for" and not _writes(op):
            loop = op
    return loop


def _feeds_dot(load: ir.Operation) -> bool:
    pending = [load.results[0]]
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user.name == "tile.dot":
                return True
            if user.name in _PASS_ON:
                pending.append(user.results[0])
    return False


def _writes(loop: ir.Operation) -> bool:
    return any(op.name in GLOBAL_WRITES or orders(op) for op in walk(loop))


def _add_scratch(function: ir.Operation, size: int) -> None:
    """Give a kernel the argument that is its scratch memory."""
    scratch = tile.ptr_type(ir.IntegerType.get_signless(8, function.context))
    add_argument(function, scratch, {SCRATCH: i32_attr(size, function.context)}, function.location)
