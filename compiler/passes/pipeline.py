"""`tilegpu-pipeline`: loads that feed dots run ahead of the loop that uses them.

Before: innermost `scf.for` loops with `tile.load` whose values reach a dot, directly through `tilegpu.local_alloc` or through registers; `tilegpu-lower-dots` has run.
After: each such load is a `tilegpu.async_copy` into one slot of a buffer with `num_stages` slots, issued `num_stages - 1` iterations ahead:

    copies of the first num_stages - 1 iterations, one group each
    for …:
        async_wait num = num_stages - 2        this iteration's slot has arrived
        use slot `consume`
        copy for the iteration num_stages - 1 ahead into slot `produce`, whose readers are done
    async_wait num = 0

In a loop with wgmma the copies stand behind the first wgmma, so that a wait for the wgmmas of the iteration before can be put between
(`tilegpu-overlap-wgmma`); in any other at the top. `produce` is the slot that the iteration before consumed. Address computations are
repeated for the iteration ahead; where it lies beyond the loop's end, the copy is masked off.

A loop's attribute `tile.num_stages` overrides the option. Loops whose slots do not fit into shared memory get fewer stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlir import ir

from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.encoding import buffer_type, layout_of, shared_of
from tilewright.compiler.layouts import SharedLayout, dim_order, identity, shared_vector_width
from tilewright.dialects import tilegpu

from .building import Builder, collect, i32_attr, is_zero, tensor_type
from .registry import register

_DOTS = frozenset({"tilegpu.wgmma", "tilegpu.mma", "tile.dot"})
# cp.async moves 4, 8 or 16 bytes.
_MIN_COPY_BYTES = 4


@register("tilegpu-pipeline")
def pipeline(module: ir.Operation, *, num_stages: int = 3, shared_limit: int = 227 * 1024) -> None:
    """Run on a module; see the file's docstring. `shared_limit` is the shared memory of a CTA in bytes."""
    for function in collect(module, "func.func"):
        loops = [op for op in collect(function, "scf.for") if not collect(op, "scf.for", "scf.while")]
        for op in loops:
            stages = num_stages
            if "tile.num_stages" in op.attributes:
                stages = ir.IntegerAttr(op.attributes["tile.num_stages"]).value
            if stages > 1:
                _pipeline_loop(op, stages, shared_limit)


@dataclass
class _Copy:
    """A load that becomes a copy. `shared` is the buffer's layout; `alloc` the allocation that holds the loaded value, and its fence, if the
    dot reads it from there; `position` and `alloc` are positions in the loop."""

    load: ir.Operation
    position: int
    shared: SharedLayout
    alloc: list[int]
    buffer: ir.Value | None = None

    @property
    def element(self) -> ir.Type:
        return self.load.results[0].type.element_type

    @property
    def slot_bytes(self) -> int:
        return self.shared.allocation_elements() * element_bytes(self.element)


def _pipeline_loop(op: ir.Operation, stages: int, shared_limit: int) -> None:
    loop = Loop(op)
    copies = _copies(loop)
    if not copies:
        return
    taken = _bytes_outside(op)
    per_stage = sum(-(-c.slot_bytes // 1024) * 1024 for c in copies)
    stages = min(stages, max(1, (shared_limit - taken) // per_stage))
    if stages > 1:
        _Expansion(loop, copies, stages).run()


def _copies(loop: Loop) -> list[_Copy]:
    """Return the loads of a loop that can and should run ahead."""
    forced = "tile.num_stages" in loop.op.attributes
    out = []
    for position, op in enumerate(loop.ops):
        if loop.names[position] != "tile.load" or not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        if not (forced or _reaches_dot(loop, position)) or not _has_copy_form(op):
            continue
        if loop.slice_of(op.operands) is None or not loop.may_reorder(op):
            continue
        out.append(_placed(loop, position))
    return out


def _reaches_dot(loop: Loop, load: int) -> bool:
    pending, seen = [load], set()
    while pending:
        position = pending.pop()
        if position in seen:
            continue
        seen.add(position)
        if loop.names[position] in _DOTS:
            return True
        for result in loop.ops[position].results:
            for use in result.uses:
                user = loop.position(use.owner.operation)
                if user is not None and loop.names[user] != "scf.yield":
                    pending.append(user)
    return False


def _has_copy_form(load: ir.Operation) -> bool:
    """Whether cp.async can do what a load does: 4 bytes or more at a time, zero where the mask is false."""
    if "is_volatile" in load.attributes or not _width_bytes(load) >= _MIN_COPY_BYTES:
        return False
    return len(load.operands) < 3 or is_zero(load.operands[2])


def _width_bytes(load: ir.Operation) -> int:
    width = ir.IntegerAttr(load.attributes["tilegpu.vector"]).value if "tilegpu.vector" in load.attributes else 1
    return width * element_bytes(load.results[0].type.element_type)


def _placed(loop: Loop, position: int) -> _Copy:
    """Choose the buffer: that of the dot's operand if the copy can write it in pieces of 4 bytes, else a plain one for the same threads."""
    load = loop.ops[position]
    type_ = load.results[0].type
    layout, bits = layout_of(type_), 8 * element_bytes(type_.element_type)
    for use in load.results[0].uses:
        user = use.owner.operation
        if user.name == "tilegpu.local_alloc":
            shared = shared_of(user.results[0].type)
            if shared_vector_width(layout, shared, bits) * bits >= 8 * _MIN_COPY_BYTES:
                place = loop.position(user)
                fenced = loop.names[place + 1] == "tilegpu.fence_async"
                return _Copy(load, position, shared, [place, place + 1] if fenced else [place])
    return _Copy(load, position, identity(tuple(type_.shape), dim_order(layout)), [])


def _bytes_outside(op: ir.Operation) -> int:
    """Return the shared memory of the buffers that are allocated before a loop and may live through it."""
    total = 0
    block = op.block
    while block is not None:
        for other in block.operations:
            other = other.operation
            if other.name == "tilegpu.local_alloc":
                shape, element, _, slots = tilegpu.buffer_info(other.results[0].type)
                total += prod(shape) * element_bytes(element) * max(1, slots)
        parent = block.owner.operation
        block = parent.block if parent.name != "func.func" else None
    return total


class _Expansion:
    """Rebuilds one loop with its copies ahead: live operations move to a new loop beside the old one."""

    def __init__(self, loop: Loop, copies: list[_Copy], stages: int):
        self.loop = loop
        self.copies = copies
        self.stages = stages
        self.distance = stages - 1
        needed = loop.slice_of([v for c in copies for v in c.load.operands])
        self.slice_ops = [loop.ops[p] for p in sorted(needed.ops)]
        self.ahead = sorted(needed.carried)
        self.context = loop.op.context
        self.token = tilegpu.token_type()
        self.i1 = ir.IntegerType.get_signless(1, self.context)

    def run(self) -> None:
        """Do it; the old loop is gone afterwards."""
        loop = self.loop
        before = Builder.before(loop.op)
        for copy in self.copies:
            copy.buffer = before.value("tilegpu.local_alloc", buffer_type(copy.shared, copy.element, self.stages), [])
        current = self._prologue(before)
        reach = before.binary("arith.muli", loop.step, before.integer(loop.step.type, self.distance))
        live, kept = loop.live({p for c in self.copies for p in (c.position, *c.alloc)})
        kept = sorted(kept)
        inits = [loop.inits[i] for i in kept] + current + [before.i32(0), before.i32(self.distance)]
        attributes = {name: loop.op.attributes[name] for name in loop.op.attributes}
        types = [v.type for v in inits]
        new = before.op("scf.for", types, [loop.lower, loop.upper, loop.step, *inits], attributes, regions=1)
        block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[loop.op.location] * (len(types) + 1))
        self._fill(block, sorted(live), kept, reach)
        Builder.after(new).op("tilegpu.async_wait", [self.token], [], {"num": i32_attr(0, self.context)})
        for position, i in enumerate(kept):
            loop.op.results[i].replace_all_uses_with(new.results[position])
        loop.op.erase()

    def _prologue(self, build: Builder) -> list[ir.Value]:
        """Issue the copies of the first iterations; return the carried values of the iteration after them."""
        loop = self.loop
        current = [loop.inits[i] for i in self.ahead]
        iv = loop.lower
        length = build.binary("arith.subi", loop.upper, loop.lower)
        offset = build.integer(loop.iv.type, 0)
        for stage in range(self.distance):
            if stage:
                iv = build.binary("arith.addi", iv, loop.step)
                offset = build.binary("arith.addi", offset, loop.step)
            current = self._issue(build, iv, current, self._greater(build, length, offset), build.i32(stage))
        return current

    def _fill(self, block: ir.Block, live: list[int], kept: list[int], reach: ir.Value) -> None:
        """Move the live operations into the new body and add the wait, the slots and the copies."""
        loop = self.loop
        iv, *args = block.arguments
        carried, ahead, (consume, produce) = args[: len(kept)], args[len(kept) : -2], args[-2:]
        build = Builder(ir.InsertionPoint(block), loop.op.location)
        wait = build.op("tilegpu.async_wait", [self.token], [], {"num": i32_attr(self.distance - 1, self.context)})
        uses_wgmma = any(loop.names[p] == "tilegpu.wgmma" for p in live)
        if uses_wgmma:
            build.op("tilegpu.fence_async", [], [])
        for copy in self.copies:
            self._replace(build, copy, consume, wait.results[0])
        issue_behind = next(p for p in live if loop.names[p] == "tilegpu.wgmma_wait") if uses_wgmma else None
        following: list[ir.Value] = []

        def issue() -> list[ir.Value]:
            # upper - iv does not overflow inside the loop, iv + reach might.
            remaining = build.binary("arith.subi", loop.upper, iv)
            ahead_iv = build.binary("arith.addi", iv, reach)
            return self._issue(build, ahead_iv, ahead, self._greater(build, remaining, reach), produce)

        if issue_behind is None:
            following = issue()
        for position in live:
            block.append(loop.ops[position])
            if position == issue_behind:
                following = issue()
        wrapped = build.binary("arith.addi", consume, build.i32(1))
        is_end = self._compare(build, 0, wrapped, build.i32(self.stages))
        next_slot = build.value("arith.select", consume.type, [is_end, build.i32(0), wrapped])
        build.op("scf.yield", [], [*(loop.yields[i] for i in kept), *following, next_slot, consume])
        loop.iv.replace_all_uses_with(iv)
        for i, arg in zip(kept, carried, strict=True):
            loop.args[i].replace_all_uses_with(arg)

    def _replace(self, build: Builder, copy: _Copy, consume: ir.Value, token: ir.Value) -> None:
        """Let the users of a load read the slot that has arrived."""
        slot = self._slot(build, copy, consume)
        alloc = self.loop.ops[copy.alloc[0]] if copy.alloc else None
        if alloc is not None:
            alloc.results[0].replace_all_uses_with(slot)
        value = copy.load.results[0]
        if any(alloc is None or use.owner.operation != alloc for use in value.uses):
            loaded = build.value("tilegpu.local_load", value.type, [slot, token])
            value.replace_all_uses_with(loaded)

    def _slot(self, build: Builder, copy: _Copy, index: ir.Value) -> ir.Value:
        return build.value("tilegpu.slot", buffer_type(copy.shared, copy.element), [copy.buffer, index])

    def _compare(self, build: Builder, predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
        attr = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, self.context), predicate)
        return build.value("arith.cmpi", self.i1, [a, b], {"predicate": attr})

    def _greater(self, build: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._compare(build, 4, a, b)  # sgt

    def _issue(self, build: Builder, iv: ir.Value, current: list[ir.Value], more: ir.Value, slot: ir.Value) -> list[ir.Value]:
        """Copy for the iteration of `iv` into `slot` if there are `more` iterations; return the carried values of the next one."""
        loop = self.loop
        values = {loop.iv: iv, **{loop.args[i]: v for i, v in zip(self.ahead, current, strict=True)}}
        for op in self.slice_ops:
            build.clone(op, values)
        tokens = [self._copy(build, copy, values, more, slot) for copy in self.copies]
        build.op("tilegpu.async_commit", [self.token], tokens)
        return [values.get(loop.yields[i], loop.yields[i]) for i in self.ahead]

    def _copy(self, build: Builder, copy: _Copy, values: dict[ir.Value, ir.Value], more: ir.Value, slot: ir.Value) -> ir.Value:
        pointer, *rest = (values.get(v, v) for v in copy.load.operands)
        mask = build.splat(more, tensor_type(pointer.type, self.i1))
        if rest:
            mask = build.binary("arith.andi", rest[0], mask)
        attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 0], self.context)}
        for name in ("cache", "evict", "tilegpu.vector"):
            if name in copy.load.attributes:
                attributes[name] = copy.load.attributes[name]
        return build.value("tilegpu.async_copy", self.token, [pointer, self._slot(build, copy, slot), mask], attributes)
