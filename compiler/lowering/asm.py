"""Inline assembly: the op itself, and the strings of predicated memory accesses."""

from collections.abc import Sequence

from mlir import ir

from .context import LoweringContext

REGISTER_CLASS = {1: "b", 8: "h", 16: "h", 32: "r", 64: "l", 128: "q"}


def inline_asm(
    ctx: LoweringContext, text: str, constraints: str, operands: Sequence[ir.Value], result: ir.Type | None, side_effects: bool = True
) -> ir.Value | None:
    """One inline asm op. `result` is a scalar type, a struct type (several outputs) or None."""
    attrs = ctx.types.asm_attrs(text, constraints, side_effects)
    if result is None:
        return ctx.emit_void("llvm.inline_asm", operands, attrs)
    return ctx.emit("llvm.inline_asm", result, operands, attrs)


def inline_asm_multi(
    ctx: LoweringContext, text: str, constraints: str, operands: Sequence[ir.Value], results: Sequence[ir.Type], side_effects: bool = True
) -> list[ir.Value]:
    """Inline asm with several outputs, each as a value."""
    if len(results) == 1:
        return [inline_asm(ctx, text, constraints, operands, results[0], side_effects)]
    packed = inline_asm(ctx, text, constraints, operands, ctx.types.struct(*results), side_effects)
    return [ctx.emit("llvm.extractvalue", type, (packed,), ctx.types.position(i)) for i, type in enumerate(results)]


def braces(first: int, count: int) -> str:
    """`$first` alone, or `{$first, $second, …}`."""
    names = [f"${first + i}" for i in range(count)]
    return names[0] if count == 1 else "{" + ", ".join(names) + "}"
