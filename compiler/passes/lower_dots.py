"""`tilegpu-lower-dots`: dots become matrix instructions, their operands move to where these read them.

Before: `tile.dot` with layouts, as `tilegpu-assign-layouts` leaves it.
After: `tilegpu.wgmma` followed by its `tilegpu.wgmma_wait`, `tilegpu.mma`, or `tile.dot` whose operands hold in each thread what its part
of the accumulator needs. An operand that is loaded from memory goes through a `tilegpu.local_alloc` right behind the load, in the widest
swizzle its inner dimension allows, so that the pipeliner can turn load and allocation into an asynchronous copy. An operand that was
computed in registers of the right threads stays there.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.dot_plan import DotPlan, fma_operand, plan_of
from tilewright.compiler.analysis.layout_rules import order_of
from tilewright.compiler.analysis.machine import Machine
from tilewright.compiler.encoding import buffer_type, layout_of, with_layout
from tilewright.compiler.layouts import (
    LinearLayout,
    SharedLayout,
    conflict_free,
    dim_order,
    element_count,
    log2_exact,
    mma_operand,
    nvmma,
    register_sources,
    reshape,
    trans,
    wgmma_operand_a,
)
from tilewright.compiler.layouts.descriptors import matrix_descriptor, tma_layout
from tilewright.dialects import tilegpu

from .building import Builder, block_of, collect, defining, i32_array
from .registry import register

# Operand elements a thread holds at once in the FMA form; longer K is done in parts.
_FMA_OPERAND_ELEMENTS = 64
# An operand that does not change in the loop is read before it if it takes at most this many 32-bit registers.
_HOISTED_REGISTERS = 32


@register("tilegpu-lower-dots", only_for=("tile.dot",))
def lower_dots(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    machine = Machine.read(module)
    placer = _Placer(machine)
    for op in collect(module, "tile.dot"):
        plan = plan_of(op, machine)
        match plan.kind:
            case "wgmma":
                _wgmma(op, plan, placer)
            case "mma":
                _mma(op, plan, placer)
            case _:
                _fma(op, placer)


class _Placer:
    """Puts operands into shared memory, each value once in each layout."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self._buffers: dict[tuple[ir.Value, SharedLayout], ir.Value] = {}

    def buffer(self, value: ir.Value, shared: SharedLayout, fence: bool) -> ir.Value:
        """Return a buffer that holds `value`; `fence` makes it visible to wgmma."""
        key = (value, shared)
        found = self._buffers.get(key)
        if found is None:
            build = Builder.after_definition(value)
            found = build.value("tilegpu.local_alloc", buffer_type(shared, value.type.element_type), [value])
            if fence:
                build.op("tilegpu.fence_async", [], [])
            self._buffers[key] = found
        return found


def _peel_trans(value: ir.Value) -> tuple[ir.Value, tuple[int, ...] | None]:
    """Return the value that `value` is a transposition of, and the permutation; (value, None) if it is none."""
    op = defining(value)
    if op is not None and op.name == "tile.trans":
        return op.operands[0], order_of(op)
    return value, None


def _view(buffer: ir.Value, value: ir.Value, order: tuple[int, ...], shared: SharedLayout, build: Builder) -> ir.Value:
    """Return a transposed view of a buffer, in the shape of `value`."""
    type_ = buffer_type(SharedLayout(trans(shared.linear, order), shared.padding), value.type.element_type)
    return build.value("tilegpu.view", type_, [buffer], {"order": i32_array(order, type_.context)})


def _is_loaded(value: ir.Value) -> bool:
    """Whether a value comes straight from memory, so that it passes shared memory on its way anyway."""
    op = defining(value)
    return op is not None and op.name in ("tile.load", "tile.descriptor_load")


def _bits(type_: ir.Type) -> int:
    return type_.element_type.width


def _finish(op: ir.Operation, result: ir.Value) -> None:
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _attributes(op: ir.Operation, plan: DotPlan) -> dict[str, ir.Attribute]:
    """Return the attributes of the matrix instruction: those of the dot, and the instruction's shape."""
    attributes = op.attributes
    kept = ("precision", "max_imprecise", "a_unsigned", "b_unsigned")
    return {**{k: attributes[k] for k in kept if k in attributes}, "instr": i32_array(plan.instr, op.context)}


# wgmma


def _wgmma(op: ir.Operation, plan: DotPlan, placer: _Placer) -> None:
    a, b, acc = op.operands
    build = Builder.before(op)
    in_registers = wgmma_operand_a(tuple(a.type.shape), placer.machine.num_warps, _bits(a.type))
    root, _ = _peel_trans(a)
    block = _block_buffer(a, 1, plan, placer, build)
    if block is not None:
        left = block
    elif not _is_loaded(root) and register_sources(layout_of(a.type), in_registers) is not None:
        left = _converted(a, in_registers, build)
    else:
        left = _wgmma_buffer(a, 1, plan, placer, build)
    right = _wgmma_buffer(b, 0, plan, placer, build)
    # The operand segments are: a, b, acc, use_acc (absent).
    result = build.value("tilegpu.wgmma", acc.type, [left, right, acc], _attributes(op, plan))
    waited = build.value(
        "tilegpu.wgmma_wait", acc.type, [result], {"num": ir.IntegerAttr.get(ir.IntegerType.get_signless(32, op.context), 0)}
    )
    _finish(op, waited)


def _converted(value: ir.Value, layout: LinearLayout, build: Builder) -> ir.Value:
    if layout_of(value.type) == layout:
        return value
    return build.value("tilegpu.convert_layout", with_layout(value.type, layout), [value])


def _wgmma_buffer(value: ir.Value, k_dim: int, plan: DotPlan, placer: _Placer, build: Builder) -> ir.Value:
    """Return a swizzled buffer with an operand. 16-bit types keep the order in which they come, others must run along K."""
    buffer = _block_buffer(value, k_dim, plan, placer, build)
    if buffer is not None:
        return buffer
    root, order = _peel_trans(value)
    bits = _bits(root.type)
    k = order[k_dim] if order else k_dim
    inner = dim_order(layout_of(root.type))[0] if bits == 16 else k
    shared = nvmma(tuple(root.type.shape), bits, None, (inner, 1 - inner))
    buffer = placer.buffer(root, shared, True)
    return buffer if order is None else _view(buffer, value, order, shared, build)


def _block_buffer(value: ir.Value, k_dim: int, plan: DotPlan, placer: _Placer, build: Builder) -> ir.Value | None:
    """Return a view of the buffer of a block of more dimensions that TMA loads, if `value` is that block in another shape and wgmma can
    read it so; else None."""
    steps = []
    while (op := defining(value)) is not None and op.name in ("tile.trans", "tile.reshape"):
        steps.insert(0, op)
        value = op.operands[0]
    if op is None or op.name != "tile.descriptor_load" or not any(step.name == "tile.reshape" for step in steps):
        return None
    bits = _bits(value.type)
    shared = tma_layout(tuple(value.type.shape), bits, True)
    types = []
    for step in steps:
        layout, shape = shared.linear, tuple(step.results[0].type.shape)
        shared = SharedLayout(reshape(layout, shape) if step.name == "tile.reshape" else trans(layout, order_of(step)))
        types.append(buffer_type(shared, value.type.element_type))
    if matrix_descriptor(shared, 1 - k_dim, plan.instr[1 - k_dim], bits) is None:
        return None
    buffer = placer.buffer(value, tma_layout(tuple(value.type.shape), bits, True), True)
    for step, type_ in zip(steps, types, strict=True):
        attributes = {"order": step.attributes["order"]} if step.name == "tile.trans" else {}
        buffer = build.value("tilegpu.view", type_, [buffer], attributes)
    return buffer


# mma.sync


def _mma(op: ir.Operation, plan: DotPlan, placer: _Placer) -> None:
    build = Builder.before(op)
    a, b = (_mma_operand(op.operands[i], plan, i, placer, op) for i in (0, 1))
    _finish(op, build.value("tilegpu.mma", op.operands[2].type, [a, b, op.operands[2]], _attributes(op, plan)))


def _mma_operand(value: ir.Value, plan: DotPlan, operand: int, placer: _Placer, op: ir.Operation) -> ir.Value:
    layout = mma_operand(tuple(value.type.shape), plan.warps, _bits(value.type), operand)
    root, order = _peel_trans(value)
    if not _is_loaded(root):
        return _converted(value, layout, Builder.before(op))
    shared = _mma_shared(root)
    buffer = placer.buffer(root, shared, False)
    small = element_count(layout) * _bits(value.type) <= 32 * _HOISTED_REGISTERS
    build = Builder.after_definition(buffer) if small and block_of(root) != op.block else Builder.before(op)
    if order is not None:
        buffer = _view(buffer, value, order, shared, build)
    return build.value("tilegpu.local_load", with_layout(value.type, layout), [buffer])


def _mma_shared(loaded: ir.Value) -> SharedLayout:
    """Return a layout without bank conflicts: for a block that TMA loads, one that it can write."""
    shape, bits = tuple(loaded.type.shape), _bits(loaded.type)
    by_tma = tma_layout(shape, bits, True) if defining(loaded).name == "tile.descriptor_load" else None
    return by_tma or conflict_free(shape, bits, dim_order(layout_of(loaded.type)))


# FMA


def _fma(op: ir.Operation, placer: _Placer) -> None:
    """Give each thread the operand rows and columns of its part of the accumulator, a part of K at a time."""
    a, b, acc = op.operands
    accumulator = layout_of(acc.type)
    k = a.type.shape[-1]
    per_k = element_count(fma_operand(accumulator, 1, 0)) + element_count(fma_operand(accumulator, 1, 1))
    part = 1
    while part < k and 2 * part * per_k <= _FMA_OPERAND_ELEMENTS:
        part *= 2
    part = max(part, k // 16)
    build = Builder.before(op)
    attributes = {name: op.attributes[name] for name in ("precision", "max_imprecise", "a_unsigned", "b_unsigned") if name in op.attributes}
    layouts = [fma_operand(accumulator, part, i) for i in (0, 1)]
    if part == k:
        operands = [_converted(v, layout, build) for v, layout in zip((a, b), layouts, strict=True)]
        _finish(op, build.value("tile.dot", acc.type, [*operands, acc], attributes))
        return
    shareds = [_by_parts(tuple(v.type.shape), i, part) for i, v in enumerate((a, b))]
    sources = [placer.buffer(v, shared, False) for v, shared in zip((a, b), shareds, strict=True)]
    for start in range(0, k, part):
        operands = [_load_part(sources[i], i, start, layouts[i], build) for i in (0, 1)]
        acc = build.value("tile.dot", acc.type, [*operands, acc], attributes)
    _finish(op, acc)


def _by_parts(shape: tuple[int, ...], operand: int, part: int) -> SharedLayout:
    """Return a shared layout in which the parts of K follow one another: A has its K, B its N innermost."""
    rank = len(shape)
    k = rank - 1 if operand == 0 else rank - 2

    def steps(dim: int, start: int, stop: int) -> list[tuple[int, ...]]:
        strides = [1 << i for i in range(start.bit_length() - 1, stop.bit_length() - 1)]
        return [tuple(s if d == dim else 0 for d in range(rank)) for s in strides]

    inner = steps(k, 1, part)
    other = [s for d in reversed(range(rank)) if d != k for s in steps(d, 1, shape[d])]
    across = inner + other if operand == 0 else other[: log2_exact(shape[-1])] + inner + other[log2_exact(shape[-1]) :]
    return SharedLayout(LinearLayout({"offset": across + steps(k, part, shape[k])}, shape))


def _load_part(source: ir.Value, operand: int, start: int, layout: LinearLayout, build: Builder) -> ir.Value:
    """Read the part of a buffer that starts at `start` along K, in `layout`."""
    shape, element, _, _ = tilegpu.buffer_info(source.type)
    rank = len(shape)
    k = rank - 1 if operand == 0 else rank - 2
    part = _by_parts(layout.out_sizes, operand, layout.out_sizes[k])
    offsets = [start if d == k else 0 for d in range(rank)]
    view = build.value("tilegpu.view", buffer_type(part, element), [source], {"offsets": i32_array(offsets, element.context)})
    return build.value("tilegpu.local_load", with_layout(ir.RankedTensorType.get(layout.out_sizes, element), layout), [view])
