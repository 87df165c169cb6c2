"""`tilegpu-start-accumulators`: accumulators of loops need not be set to zero.

Before: `tilegpu-warp-specialize` and `tilegpu-pipeline` have run.
After: where a loop that is sure to run carries an accumulator that is zero at first, and only a wgmma of its body reads it,

    for … iter_args(acc = zeros):           for … iter_args(acc = poison):
        acc' = wgmma a, b, acc                   acc' = wgmma a, b, acc use_acc = iv > lower
        ...

A loop is sure to run if its bounds are constants that say so, or behind a branch that compares them.
"""

from __future__ import annotations

from mlir import ir

from .building import Builder, collect, defining, is_zero
from .registry import register
from .rings import SGT, SLT, compare

_FIRST_INIT = 3
_ACCUMULATOR, _OPERANDS = 2, 3


@register("tilegpu-start-accumulators", only_for=("tile.dot", "tilegpu.wgmma"))
def start_accumulators(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for loop in collect(module, "scf.for"):
        if _is_sure_to_run(loop) and "unsignedCmp" not in loop.attributes:
            start_from_nothing(loop)


def start_from_nothing(loop: ir.Operation) -> None:
    """Rewrite the accumulators of a loop that is sure to run."""
    for number, init in enumerate(list(loop.operands)[_FIRST_INIT:]):
        if is_zero(init):
            _start(loop, number)


def _is_sure_to_run(loop: ir.Operation) -> bool:
    lower, upper = list(loop.operands)[:2]
    bounds = [_constant(lower), _constant(upper)]
    if None not in bounds:
        return bounds[0] < bounds[1]
    branch = loop.parent.operation
    if branch.name != "scf.if" or loop.block != branch.regions[0].blocks[0]:
        return False
    condition = defining(branch.operands[0])
    if condition is None or condition.name != "arith.cmpi":
        return False
    predicate = ir.IntegerAttr(condition.attributes["predicate"]).value
    return (predicate, *condition.operands) in ((SLT, lower, upper), (SGT, upper, lower))


def _constant(value: ir.Value) -> int | None:
    op = defining(value)
    return ir.IntegerAttr(op.attributes["value"]).value if op is not None and op.name == "arith.constant" else None


def _start(loop: ir.Operation, number: int) -> None:
    """Rewrite carried value `number`, if only the accumulation of a wgmma reads it."""
    block = loop.regions[0].blocks[0]
    iv, argument = block.arguments[0], block.arguments[1 + number]
    uses = list(argument.uses)
    if len(uses) != 1 or uses[0].operand_number != _ACCUMULATOR:
        return
    issue = uses[0].owner.operation
    if issue.name != "tilegpu.wgmma" or len(issue.operands) != _OPERANDS or issue.block != block:
        return
    build = Builder.before(issue)
    again = compare(build, SGT, iv, loop.operands[0])
    attributes = {name: issue.attributes[name] for name in issue.attributes}
    new = build.op("tilegpu.wgmma", [issue.results[0].type], [*issue.operands, again], attributes)
    issue.results[0].replace_all_uses_with(new.results[0])
    issue.erase()
    nothing = Builder.before(loop).value("ub.poison", argument.type, [], {"value": ir.Attribute.parse("#ub.poison")})
    loop.operands[_FIRST_INIT + number] = nothing
