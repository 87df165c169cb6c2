"""An estimate of how many registers of a thread hold tensors in a loop, or in straight-line code.

Elementwise operations between two reductions run element by element, so their results take no room; what counts is what is alive across a
reduction, a scan or a change of layout, where a thread waits for others with all of its elements at hand. Integers, pointers and masks are
left out: they are mostly made from a few scalars where they are needed.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.encoding import layout_of

from .loop_slice import Loop

#: Operations in which threads wait for each other.
MEETINGS = frozenset({"tile.reduce", "tile.scan", "tilegpu.convert_layout", "tile.histogram", "tile.gather", "tile.barrier"})


def words_of(type_: ir.Type) -> int:
    """Return the 32-bit registers that a thread needs for a value; 0 for masks and pointers."""
    if not isinstance(type_, ir.RankedTensorType):
        return 1
    element = type_.element_type
    bits = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 0
    return 0 if bits <= 1 else -(-layout_of(type_).in_size("register") * bits // 32)


def live_words(loop: Loop) -> int:
    """Return the registers of a thread that tensors of data take where most of them are alive in the loop."""
    last_use: dict[ir.Value, int] = {}
    for position, op in enumerate(loop.ops):
        for value in op.operands:
            last_use[value] = position
    outside = {v: p for v, p in last_use.items() if loop.definition(v) is None and v != loop.iv and loop.carried_index(v) is None}
    always = sum(_data_words(v.type) for v in outside if not _repeats_a_scalar(v)) + sum(_data_words(v.type) for v in loop.args)
    return always + _most_words(loop.ops, last_use)


def row_words(ops: list[ir.Operation]) -> int:
    """Return the registers of a thread that tensors of data take where most of them are alive in straight-line code."""
    return _most_words(ops, {value: position for position, op in enumerate(ops) for value in op.operands})


def words_across(ops: list[ir.Operation]) -> int:
    """Return the registers of a thread that tensors of data take which are needed behind a meeting, at the one where these are most."""
    return _most_words(ops, {value: position - 1 for position, op in enumerate(ops) for value in op.operands})


def _most_words(ops: list[ir.Operation], last_use: dict[ir.Value, int]) -> int:
    """The registers of what the operations make, at the meeting where most of it is alive."""
    most = 0
    alive: dict[ir.Value, int] = {}
    for position, op in enumerate(ops):
        if op.name in MEETINGS:
            most = max(most, sum(_data_words(v.type) for v, last in alive.items() if last >= position))
        alive.update((result, last_use.get(result, -1)) for result in op.results)
    return most


def _repeats_a_scalar(value: ir.Value) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name in ("arith.constant", "tile.splat")


def _data_words(type_: ir.Type) -> int:
    """The registers of a tensor of floats, or of small integers, which may be data as well."""
    if not isinstance(type_, ir.RankedTensorType):
        return 0
    element = type_.element_type
    is_index = isinstance(element, ir.IntegerType) and element.width in (1, 32, 64)
    return 0 if is_index else words_of(type_)
