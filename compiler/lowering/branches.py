"""Code that runs where a condition of the thread holds: a branch around it."""

from collections.abc import Callable

from mlir import ir

from .context import LoweringContext


def when(
    ctx: LoweringContext, condition: ir.Value | None, action: Callable[[], ir.Value | None], type: ir.Type | None = None
) -> ir.Value | None:
    """Run `action` where the i1 `condition` holds, behind a branch; its result of `type` is zero elsewhere."""
    if condition is None:
        return action()
    inside = ctx.new_block()
    after = ctx.new_block() if type is None else ctx.new_block(type)
    ctx.cond_branch(condition, inside, after, (), () if type is None else (ctx.zero(type),))
    ctx.enter(inside)
    with ctx.conditional():
        result = action()
    ctx.branch(after, () if type is None else (result,))
    ctx.enter(after)
    return None if type is None else after.arguments[0]
