"""What a loop does to the accumulator of a delayed wgmma before the product is added to it: the rescaling of attention, say.

    acc = acc * broadcast(f)                 `ops`: operations on the accumulator; `factors`: the broadcasts that they read
    acc = wgmma(p, v, acc)

In a loop that issues wgmma(p, v, acc) together with the first product of the next iteration, that one has to wait for nothing but p. So the
operations on the accumulator may stand between the two (`delayed_loop`): the tensor cores have the first product to work on meanwhile. That
pays for an accumulator much larger than p (heads of 256 with 64 keys a block: 780 -> 812 TFLOP/s on an H200), and where the CTAs of a
cluster wait for each other's copies (heads of 128: 2,497k cycles for the longest CTA, 2,572k without). Others are better updated beside the
exponentials that make p: each of these takes eight cycles, in which other operations are issued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from tilewright.compiler.analysis.layout_rules import is_elementwise
from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.compiler.analysis.wgmma_loops import Delayed
from tilewright.compiler.encoding import layout_of
from tilewright.compiler.layouts import element_count

from .building import Builder, Values, defining, use_count

#: Unit attribute of a product with a broadcast that is one in many iterations, in all rows of a warp (`lowering/elementwise.py`).
_OFTEN_ONE = "tilegpu.often_one"
#: A factor has that many times fewer elements than the accumulator: it is carried in few registers.
_FEWER = 8
#: So many operations find no room beside one exponential.
_BESIDE_ONE = 4
_SHAPE_OPS = ("tile.broadcast", "tile.splat")
_SHAPES = (*_SHAPE_OPS, "tile.expand_dims", "tilegpu.convert_layout")
_POWERS = ("math.exp2", "math.exp")
_MAXIMA = ("arith.maxnumf", "arith.maximumf")


@dataclass(frozen=True)
class Update:
    """The operations of one delayed wgmma: positions in the loop, in program order."""

    ops: tuple[int, ...]
    factors: tuple[int, ...]
    often_one: frozenset[int]

    def positions(self, loop: Loop) -> set[int]:
        """Return the positions of what nothing but the product needs: the operations, and the broadcasts that nothing else reads."""
        users = {p: {loop.position(use.owner.operation) for use in loop.ops[p].results[0].uses} for p in self.factors}
        return {*self.ops, *(p for p in self.factors if users[p] <= set(self.ops))}

    def reads(self, loop: Loop) -> list[ir.Value]:
        """Return what the factors are broadcasts of."""
        return [loop.ops[p].operands[0] for p in self.factors]

    def make(self, build: Builder, loop: Loop, delayed: Delayed, accumulator: ir.Value, reads: Sequence[ir.Value]) -> ir.Value:
        """Repeat the operations on an accumulator and other `reads`; return what becomes of it."""
        values: Values = {self._start(loop): accumulator, **dict(zip(self.reads(loop), reads, strict=True))}
        for p in sorted((*self.ops, *self.factors)):
            made = build.clone(loop.ops[p], values)
            if p in self.often_one:
                made.attributes[_OFTEN_ONE] = ir.UnitAttr.get(loop.op.context)
        return values[loop.ops[delayed.issue].operands[2]]

    def _start(self, loop: Loop) -> ir.Value:
        made = {loop.ops[p].results[0] for p in self.factors}
        return next(v for v in loop.ops[self.ops[0]].operands if v not in made)


def update_of(loop: Loop, delayed: Delayed, shared: bool) -> Update | None:
    """Return what the loop does to the accumulator; None if that is nothing, does not pay, or is more than `Update` can say. `shared`:
    whether CTAs copy for each other."""
    issue = loop.ops[delayed.issue]
    carried, value = loop.args[delayed.carried], issue.operands[2]
    left, accumulator = (element_count(layout_of(v.type)) for v in (issue.operands[0], issue.results[0]))
    if accumulator < _BESIDE_ONE * left and not shared:
        return None
    ops: list[int] = []
    factors: list[int] = []
    while value != carried:
        position = loop.definition(value)
        if position is None or use_count(value) != 1 or not is_elementwise(loop.names[position]):
            return None
        found = [(v, _factor(loop, v)) for v in loop.ops[position].operands]
        rest = [v for v, factor in found if factor is None]
        if len(rest) != 1:
            return None
        ops.append(position)
        factors += [factor for _, factor in found if factor is not None]
        value = rest[0]
    if not ops or use_count(carried) != 1:
        return None
    often_one = frozenset(p for p in ops if _is_rescaling(loop, loop.ops[p]))
    return Update(tuple(reversed(ops)), tuple(sorted(set(factors))), often_one)


def _is_rescaling(loop: Loop, op: ir.Operation) -> bool:
    """Whether an operation multiplies by exp2(m - max(m, ...)), one where a maximum stays what it is."""
    if op.name != "arith.mulf" or _factor(loop, op.operands[1]) is None:
        return False
    value = op.operands[1]
    while (position := loop.definition(value)) is not None and loop.names[position] in _SHAPES:
        value = loop.ops[position].operands[0]
    power = defining(value)
    difference = defining(power.operands[0]) if power is not None and power.name in _POWERS else None
    if difference is None or difference.name != "arith.subf":
        return False
    old, new = difference.operands
    maximum = defining(new)
    return maximum is not None and maximum.name in _MAXIMA and old in list(maximum.operands)


def _factor(loop: Loop, value: ir.Value) -> int | None:
    """Return the position of the broadcast of something small in the loop that a value is; None if it is anything else."""
    position = loop.definition(value)
    if position is None or loop.names[position] not in _SHAPE_OPS:
        return None
    source = loop.ops[position].operands[0].type
    elements = prod(source.shape) if isinstance(source, ir.RankedTensorType) else 1
    return position if elements * _FEWER <= prod(value.type.shape) else None
