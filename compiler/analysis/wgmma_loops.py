"""How the wgmmas of a loop may overlap with the rest of it: facts that the pipeliner and the placement of waits share.

- A *carried* accumulator is only added to by wgmmas in the loop (the accumulator of a matrix product): it may stay in flight from one
  iteration to the next.
- A *delayed* wgmma multiplies something that was computed from another wgmma's result in the same iteration (the second product of
  attention), and only the next iteration needs its result: issued one iteration later, behind the first wgmma, it runs while that one's
  result is worked on.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilewright.compiler.encoding import layout_of
from tilewright.compiler.layouts import element_count
from tilewright.dialects import tilegpu

from .loop_slice import Loop
from .schedule import LATE, given

# 32-bit registers that both accumulators and the left operand between them may take. Attention with heads of 128 on an H200, delayed and
# not: 112 registers (128x64 blocks, 8 warps) 460 and 437 TFLOP/s, 160 (128x128, 8 warps) 480 and 497; with 224 (128x64, 4 warps) it
# spills.
MAX_REGISTERS = 128

_WGMMA, _WAIT = "tilegpu.wgmma", "tilegpu.wgmma_wait"


@dataclass(frozen=True)
class Delayed:
    """A wgmma that may run an iteration late. Positions of it, of its wait, of the views of its right operand's buffer (in program order),
    of the allocation of that, and the index of the carried value that its result becomes."""

    issue: int
    wait: int
    views: tuple[int, ...]
    alloc: int
    carried: int


def issues(loop: Loop) -> list[int]:
    """Return the positions of the wgmmas directly in the body."""
    return [p for p, name in enumerate(loop.names) if name == _WGMMA]


def carries_accumulators(loop: Loop) -> bool:
    """Whether the loop's wgmmas only add to accumulators that it carries, from operands that no wgmma's result goes into."""
    found = issues(loop)
    return bool(found) and all(_carried_accumulator(loop, p) is not None for p in found)


def _carried_accumulator(loop: Loop, issue: int) -> int | None:
    """Return the index of the carried value that a wgmma, waited for or not, adds to and that nothing else in the loop touches."""
    op = loop.ops[issue]
    arg = op.operands[2]
    index = loop.carried_index(arg)
    if index is None or sum(1 for _ in arg.uses) != 1:
        return None
    result = _behind_wait(op.results[0])
    uses = list(result.uses)
    if len(uses) == 1 and loop.position(uses[0].owner.operation) == len(loop.ops) - 1 and uses[0].operand_number == index:
        return index
    return None


def _behind_wait(value: ir.Value) -> ir.Value:
    uses = list(value.uses)
    if len(uses) == 1 and uses[0].owner.operation.name == _WAIT:
        return uses[0].owner.operation.results[uses[0].operand_number]
    return value


def delayed_wgmmas(loop: Loop, pipelined: set[int], max_registers: int = MAX_REGISTERS) -> list[Delayed]:
    """Return the wgmmas that may be delayed, given the positions of the allocations that become rings of slots. `max_registers`: 32-bit
    registers that both accumulators and the left operand between them may take."""
    found = issues(loop)
    if len(found) < 2:
        return []
    first = found[0]
    out = []
    for position in found[1:]:
        delayed = _delayed(loop, position, first, pipelined, max_registers)
        if delayed is not None:
            out.append(delayed)
    return out


def _delayed(loop: Loop, issue: int, first: int, pipelined: set[int], max_registers: int) -> Delayed | None:
    op = loop.ops[issue]
    left, right = op.operands[0], op.operands[1]
    late = given(op, LATE)
    if late == 0 or tilegpu.is_buffer(left.type):
        return None
    uses = list(op.results[0].uses)
    if len(uses) != 1 or uses[0].owner.operation.name != _WAIT:
        return None
    wait = uses[0].owner.operation
    final = list(wait.results[0].uses)
    last = len(loop.ops) - 1
    if len(wait.results) != 1 or len(final) != 1 or loop.position(final[0].owner.operation) != last:
        return None
    carried = final[0].operand_number
    views = []
    alloc = loop.definition(right)
    while alloc is not None and loop.names[alloc] == "tilegpu.view":
        views.append(alloc)
        alloc = loop.definition(loop.ops[alloc].operands[0])
    if alloc not in pipelined or any(sum(1 for _ in loop.ops[p].results[0].uses) != 1 for p in (alloc, *views)):
        return None
    taken = sum(registers(v.type) for v in (op.results[0], left, loop.ops[first].results[0]))
    if late is None and taken > max_registers:
        return None
    if first not in _sources(loop, [left]) or ("arg", carried) in _sources(loop, loop.ops[first].operands):
        return None
    return Delayed(issue, loop.position(wait), tuple(reversed(views)), alloc, carried)


def registers(type_: ir.Type) -> int:
    """Return the 32-bit registers of a thread that a tensor takes."""
    return element_count(layout_of(type_)) * type_.element_type.width // 32


def _sources(loop: Loop, values: list[ir.Value]) -> set:
    """Return the positions of the operations, and ("arg", index) of the carried values, that values of one iteration come from."""
    out: set = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        index = loop.carried_index(value)
        if index is not None:
            out.add(("arg", index))
            continue
        position = loop.definition(value)
        if position is not None and position not in out:
            out.add(position)
            pending += loop.ops[position].operands
    return out
