"""`tile-host-descriptors`: tensor descriptors that the host can make become arguments of the kernel.

Before: `tile.make_descriptor` in kernels without calls.
After, on targets with TMA: where base, shape and strides are computed from the kernel's arguments alone, the kernel has one more argument
of the descriptor's type, with the attribute `tile.descriptor` that says how to make it (see `add_descriptor`), and the loads, stores and
reductions that TMA can do use that. All other users keep the `tile.make_descriptor`, and `tile-lower-descriptors` turns them into plain
accesses.

The H200 refuses a TMA access whose innermost coordinate is no multiple of 16 bytes (illegal instruction), so one that may be so is
plain.

TMA accesses are not ordered with plain ones to the same memory, so memory that a kernel accesses both ways, one of them to write, is
accessed plainly, and so is what it writes if it synchronizes with other CTAs.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilewright.compiler.analysis.axis_info import AxisAnalysis, analyze, element_bytes
from tilewright.compiler.analysis.host_values import host_expression
from tilewright.compiler.analysis.loop_slice import GLOBAL_WRITES, base_argument, may_do_anything
from tilewright.compiler.analysis.machine import Machine
from tilewright.compiler.layouts.descriptors import tma_layout
from tilewright.dialects import tile

from .building import collect, i32_attr, is_public, walk
from .descriptor_arguments import FLOATS, add_descriptor, told_element
from .registry import register

_COORDINATE_BYTES = 16
_LOAD, _STORE, _REDUCE = "tile.descriptor_load", "tile.descriptor_store", "tile.descriptor_reduce"
_PLAIN_READS = frozenset({"tile.load", "tile.descriptor_gather", "tile.atomic_load", "tile.atomic_poll"})
_ATOMICS = frozenset({"tile.atomic_rmw", "tile.atomic_cas", "tile.atomic_load", "tile.atomic_store", "tile.atomic_poll"})
# (kind, bits of the element) of the reductions that TMA does, by the element type that it is told.
_REDUCTIONS = {
    "add": {32: "i32", 64: "u64"},
    "fadd": {16: "", 32: ""},
    "max": {16: "", 32: "i32", 64: "i64"},
    "min": {16: "", 32: "i32", 64: "i64"},
    "umax": {32: "u32", 64: "u64"},
    "umin": {32: "u32", 64: "u64"},
    "and": {32: "u32", 64: "u64"},
    "or": {32: "u32", 64: "u64"},
    "xor": {32: "u32", 64: "u64"},
}


@register("tile-host-descriptors", only_for=("tile.make_descriptor",))
def host_descriptors(module: ir.Operation, *, target: str = "cuda:80") -> None:
    """Run on a module; see the file's docstring."""
    if not Machine(target, 4).has_tma:
        return
    for function in collect(module, "func.func"):
        if is_public(function):
            _Function(function).run()


@dataclass
class _Accesses:
    """What a kernel does with the memory of one argument, or with memory of unknown origin."""

    reads: bool = False
    writes: bool = False
    plain_reads: bool = False
    plain_writes: bool = False


class _Function:
    """One kernel."""

    def __init__(self, function: ir.Operation):
        self.function = function
        self.accesses: dict[ir.Value | None, _Accesses] = {}
        self.may_publish = False
        self.axis = AxisAnalysis()

    def run(self) -> None:
        """Give the kernel its new arguments."""
        makers = collect(self.function, "tile.make_descriptor")
        if not makers:
            return
        self.axis = analyze(self.function)
        recipes = [recipe_of(op) for op in makers]
        self._survey({op.results[0] for op, recipe in zip(makers, recipes, strict=True) if recipe is not None})
        for op, recipe in zip(makers, recipes, strict=True):
            if recipe is not None:
                self._pass(op, recipe)

    def _survey(self, made: set[ir.Value]) -> None:
        for op in walk(self.function):
            name = op.name
            reads, writes = name in _PLAIN_READS or name == _LOAD, name in GLOBAL_WRITES
            self.may_publish = self.may_publish or name in _ATOMICS or may_do_anything(op)
            if reads or writes:
                found = self.accesses.setdefault(base_argument(op.operands[0]), _Accesses())
                by_tma = op.operands[0] in made and self._tma_can(op)
                found.reads |= reads
                found.writes |= writes
                found.plain_reads |= reads and not by_tma
                found.plain_writes |= writes and not by_tma

    def _is_ordered(self, base: ir.Value | None, op: ir.Operation) -> bool:
        """Whether TMA may do an access although it is not ordered with the others to the same memory."""
        own, unknown = self.accesses[base], self.accesses.get(None, _Accesses())
        if base is None or own.plain_writes or unknown.plain_writes or (own.writes and own.plain_reads):
            return False
        return not (own.writes and self.may_publish)

    def _tma_can(self, op: ir.Operation) -> bool:
        """Whether TMA does what an access of a descriptor does."""
        if op.name not in (_LOAD, _STORE) and not (op.name == _REDUCE and _reduction_element(op) is not None):
            return False
        element = tile.desc_info(op.operands[0].type)[1]
        innermost = list(op.operands)[-1]
        return self.axis.get(innermost).divisibility[0] * element_bytes(element) % _COORDINATE_BYTES == 0

    def _pass(self, op: ir.Operation, recipe: dict[str, ir.Attribute]) -> None:
        """Make a descriptor an argument if TMA can do any of its accesses."""
        value = op.results[0]
        base = base_argument(op.operands[0])
        users = [use.owner.operation for use in value.uses]
        users = [user for user in users if self._tma_can(user) and self._is_ordered(base, user)]
        element = _element_of(op, users)
        if not users or element is None:
            return
        recipe["element"] = ir.StringAttr.get(element, op.context)
        recipe["argument"] = i32_attr(base.arg_number, op.context)
        if any(user.name != _LOAD for user in users):
            recipe["stores"] = ir.UnitAttr.get(op.context)
        if self.accesses[base].reads and self.accesses[base].writes:
            recipe["reads_back"] = ir.UnitAttr.get(op.context)
        argument = add_descriptor(self.function, value.type, recipe, op.location)
        for user in users:
            user.operands[0] = argument


def recipe_of(op: ir.Operation) -> dict[str, ir.Attribute] | None:
    """Return what is known now of how the host makes a descriptor (see `add_descriptor`), or None if it cannot, or TMA has no box for the
    block."""
    shape, element, _ = tile.desc_info(op.results[0].type)
    base, *rest = op.operands
    rank = len(shape)
    bits = max(8, element.width)
    expressions = [host_expression(v) for v in (base, *rest[:rank], *rest[rank:-1])]
    if None in expressions or tma_layout(tuple(shape), bits, True) is None or shape[-1] * bits < 128:
        return None
    if host_expression(rest[-1]) != "1":
        return None
    texts = [ir.StringAttr.get(text, op.context) for text in expressions]
    nan = "padding" in op.attributes and "nan" in str(op.attributes["padding"])
    if nan and str(element) not in FLOATS:
        return None
    return {
        "base": texts[0],
        "shape": ir.ArrayAttr.get(texts[1 : 1 + rank], op.context),
        "strides": ir.ArrayAttr.get(texts[1 + rank :], op.context),
        "padding": ir.StringAttr.get("nan" if nan else "zero", op.context),
    }


def _reduction_element(op: ir.Operation) -> str | None:
    """Return the element type under which TMA does a reduction, or None if it does not."""
    element = tile.desc_info(op.operands[0].type)[1]
    kind = tile.enum_value(op.attributes["kind"])
    told = _REDUCTIONS.get(kind, {}).get(element.width)
    if told == "":
        return str(element) if str(element) in FLOATS else None
    return told if isinstance(element, ir.IntegerType) else None


def _element_of(op: ir.Operation, users: list[ir.Operation]) -> str | None:
    """Return the element type that suits all accesses, or None if there is none."""
    element = tile.desc_info(op.results[0].type)[1]
    told = {_reduction_element(user) for user in users if user.name == _REDUCE}
    if len(told) > 1:
        return None
    if told:
        return told.pop()
    if "tile.round_tf32" in op.attributes:
        return "tf32"
    return told_element(element)
