"""What a loop's address computations consist of, and what of a loop is alive: the facts that software pipelining rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mlir import ir

from tilewright.dialects import tile

from .tree import key

# Operations that a pipelined load's address may be computed with: pure, and cheap enough to be done once more for a later iteration.
_CHEAP_DIALECTS = ("arith.", "math.")
_CHEAP_OPS = frozenset(
    {
        "tile.addptr",
        "tile.bitcast",
        "tile.broadcast",
        "tile.expand_dims",
        "tile.fp_to_fp",
        "tile.int_to_ptr",
        "tile.mulhi",
        "tile.ptr_to_int",
        "tile.range",
        "tile.reshape",
        "tile.splat",
        "tile.trans",
    }
)
_READ_ONLY = frozenset({"tile.load", "tile.descriptor_load", "tile.descriptor_gather", "tilegpu.local_load", "tile.atomic_load"})
#: Operations that write global memory, the pointer or descriptor being operand 0.
GLOBAL_WRITES = frozenset(
    {
        "tile.store",
        "tile.atomic_rmw",
        "tile.atomic_cas",
        "tile.atomic_store",
        "tile.descriptor_store",
        "tile.descriptor_reduce",
        "tile.descriptor_scatter",
    }
)
_PASS_POINTERS_ON = frozenset(
    {
        "tile.addptr",
        "tile.splat",
        "tile.broadcast",
        "tile.expand_dims",
        "tile.bitcast",
        "tile.make_descriptor",
        "tile.trans",
        "tile.reshape",
        "tilegpu.convert_layout",
    }
)
_ATOMICS = frozenset({"tile.atomic_rmw", "tile.atomic_cas"})
_MAY_DO_ANYTHING = frozenset({"tile.inline_asm", "tile.extern_call"})
#: Unit attribute of a loop whose iterations are the programs of a launch, which run in any order.
PROGRAMS = "tile.programs"
#: Operations that other accesses may not be moved across; see also `orders`.
ORDERING = frozenset({"tile.barrier", "tile.gdc_wait", "tile.atomic_poll", "tile.atomic_load", "func.call"})


@dataclass
class Slice:
    """Positions of the operations of a loop's body, and indices of the carried values, that a computation needs. `loads`: positions of
    loads whose values it starts from."""

    ops: set[int] = field(default_factory=set)
    carried: set[int] = field(default_factory=set)
    loads: set[int] = field(default_factory=set)


class Loop:
    """A `scf.for`, its body read once. `args` are the carried values, `yields` their next values; an operation of the body is known by its
    position in `ops`."""

    def __init__(self, op: ir.Operation):
        self.op = op
        self.block = op.regions[0].blocks[0]
        self.ops = [o.operation for o in self.block.operations]
        self.names = [o.name for o in self.ops]
        self.iv, *self.args = self.block.arguments
        self.lower, self.upper, self.step, *self.inits = op.operands
        self.yields = list(self.ops[-1].operands)
        self._positions = {key(o): i for i, o in enumerate(self.ops)}
        self._arg_index = {a: i for i, a in enumerate(self.args)}

    def position(self, op: ir.Operation) -> int | None:
        """Return the position of the operation of the body that is, or holds, `op`; None if it lies outside."""
        while True:
            found = self._positions.get(key(op))
            if found is not None or op == self.op or op.parent is None:
                return found
            op = op.parent.operation

    def carried_index(self, value: ir.Value) -> int | None:
        """Return which carried value of this loop's body a value is, or None."""
        return self._arg_index.get(value)

    def definition(self, value: ir.Value) -> int | None:
        """Return the position of the operation that makes a value; None for arguments and values from outside."""
        owner = value.owner
        return None if isinstance(owner, ir.Block) else self._positions.get(key(owner.operation))

    def is_outside(self, value: ir.Value) -> bool:
        """Whether a value comes from outside of the body."""
        return self.definition(value) is None and self.carried_index(value) is None and value != self.iv

    def slice_of(self, values: Iterable[ir.Value], through_loads: bool = False) -> Slice | None:
        """Return the computation of `values` inside the body, over iterations; None if it holds anything but cheap pure operations and,
        `through_loads`, loads that may run in an earlier iteration, from addresses that are computed without loads."""
        out = Slice()
        pending = list(values)
        while pending:
            value = pending.pop()
            index = self.carried_index(value)
            if index is not None:
                if index not in out.carried:
                    out.carried.add(index)
                    pending.append(self.yields[index])
                continue
            position = self.definition(value)
            if position is None or position in out.ops:
                continue
            if through_loads and self._starts_slice(position):
                out.loads.add(position)
                continue
            if not is_cheap(self.names[position]):
                return None
            out.ops.add(position)
            pending += self.ops[position].operands
        return out

    def _starts_slice(self, position: int) -> bool:
        op = self.ops[position]
        if self.names[position] != "tile.load" or "is_volatile" in op.attributes:
            return False
        return self.slice_of(op.operands) is not None and self.may_reorder(op)

    def live(self, dropped: set[int]) -> tuple[set[int], set[int]]:
        """Return the operations and carried values that still matter once `dropped` are gone: what effects, or used results, depend on."""
        ops: set[int] = set()
        args: set[int] = set()
        pending: list[ir.Value] = []

        def keep(position: int) -> None:
            if position not in ops and position not in dropped:
                ops.add(position)
                pending.extend(self.ops[position].operands)
                pending.extend(_captured(self.ops[position]))

        for position in range(len(self.ops) - 1):
            if not _is_removable(self.names[position]):
                keep(position)
        for i, result in enumerate(self.op.results):
            if any(True for _ in result.uses):
                args.add(i)
                pending.append(self.yields[i])
        while pending:
            value = pending.pop()
            index = self.carried_index(value)
            if index is not None:
                if index not in args:
                    args.add(index)
                    pending.append(self.yields[index])
                continue
            position = self.definition(value)
            if position is not None:
                keep(position)
        return ops, args

    def dependents(self, value: ir.Value, among: Iterable[int]) -> list[int]:
        """Return those of the operations at the positions `among`, ascending, that depend on `value` in one iteration."""
        values, out = {value}, []
        for position in among:
            op = self.ops[position]
            if any(v in values for v in (*op.operands, *_captured(op))):
                out.append(position)
                values.update(op.results)
        return out

    def may_reorder(self, load: ir.Operation) -> bool:
        """Whether a load may run in an earlier iteration: nothing in the loop writes memory based on the same argument, or orders
        accesses. What a program writes behind the load is of no concern to other programs."""
        base = base_argument(load.operands[0])
        behind = self.position(load) if PROGRAMS in self.op.attributes else len(self.ops)
        for op in self._all_ops():
            if orders(op):
                return False
            if op.name in GLOBAL_WRITES and self.position(op) < behind:
                other = base_argument(op.operands[0])
                if base is None or other is None or base == other:
                    return False
        return True

    def _all_ops(self) -> Iterable[ir.Operation]:
        pending = list(self.ops)
        while pending:
            op = pending.pop()
            yield op
            for region in op.regions:
                for block in region.blocks:
                    pending += [o.operation for o in block.operations]


def orders(op: ir.Operation) -> bool:
    """Whether loads behind an operation may not run ahead of it, since it may have waited for other programs or threads, or have written
    any memory: barriers, what acquires, loads that see what others write meanwhile, and code that may do anything."""
    return op.name in ORDERING or (op.name in _ATOMICS and acquires(op)) or sees_others(op) or may_do_anything(op)


def sees_others(op: ir.Operation) -> bool:
    """Whether an operation is a load that is there to see what other programs write while this one runs."""
    return "is_volatile" in op.attributes or tile.enum_value(op.attributes.get("cache")) == "cv"


def may_do_anything(op: ir.Operation) -> bool:
    """Whether an operation is code of the user's that is not said to be pure."""
    return op.name in _MAY_DO_ANYTHING and "pure" not in op.attributes


def acquires(atomic: ir.Operation) -> bool:
    """Whether later loads may rely on what an atomic operation has read: a lock that it took, a count that it waited for."""
    sem = tile.enum_value(atomic.attributes["sem"]) if "sem" in atomic.attributes else "acq_rel"
    return sem in ("acquire", "acq_rel") and any(True for _ in atomic.results[0].uses)


def _is_removable(name: str) -> bool:
    """Whether operations of this name may be dropped when their results are not used."""
    return is_cheap(name) or name in _READ_ONLY or name == "tilegpu.convert_layout"


#: Operations that say where in the launch a CTA is.
LAUNCH_SCALARS = frozenset({"tile.program_id", "tile.num_programs", "tile.cluster_rank"})


def is_cheap(name: str) -> bool:
    """Whether operations of this name are pure, and cheap enough to be done twice."""
    return name.startswith(_CHEAP_DIALECTS) or name in _CHEAP_OPS


def _captured(op: ir.Operation) -> list[ir.Value]:
    """Return the operands of all operations inside the regions of `op`."""
    out: list[ir.Value] = []
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                out += inner.operation.operands
                out += _captured(inner.operation)
    return out


def base_argument(pointer: ir.Value) -> ir.Value | None:
    """Return the function argument that a pointer, or descriptor, or tensor of them is based on, or None if that is not plain to see."""
    for _ in range(64):
        owner = pointer.owner
        if isinstance(owner, ir.Block):
            parent = owner.owner.operation
            if parent.name == "func.func":
                return _described_argument(pointer) if tile.is_desc(pointer.type) else pointer
            if parent.name != "scf.for":
                return None
            index = pointer.arg_number - 1
            if index < 0:
                return None
            pointer = parent.operands[3 + index]
            continue
        op = owner.operation
        if op.name == "scf.for":
            pointer = op.operands[3 + pointer.result_number]
        elif op.name in _PASS_POINTERS_ON:
            pointer = op.operands[0]
        else:
            return None
    return None


def _described_argument(descriptor: ir.Value) -> ir.Value | None:
    """Return the function argument that a descriptor argument is based on (see `tile-host-descriptors`)."""
    block = descriptor.owner
    attributes = ir.ArrayAttr(block.owner.operation.attributes["arg_attrs"])[descriptor.arg_number]
    if "tile.descriptor" not in attributes:
        return None
    return block.arguments[ir.IntegerAttr(attributes["tile.descriptor"]["argument"]).value]
