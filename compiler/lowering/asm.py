"""Inline assembly: the op itself, and the strings of predicated memory accesses."""

from collections.abc import Sequence
from functools import lru_cache

from mlir import ir

from .context import LoweringContext

REGISTER_CLASS = {1: "b", 8: "h", 16: "h", 32: "r", 64: "l", 128: "q"}


@lru_cache(maxsize=1024)
def operand_counts(constraints: str) -> tuple[int, int]:
    """The numbers of outputs and of inputs that a constraint string names."""
    operands = [part for part in map(str.strip, constraints.split(",")) if part and not part.startswith("~{")]
    outputs = sum(part.startswith("=") for part in operands)
    return outputs, len(operands) - outputs


def inline_asm(
    ctx: LoweringContext, text: str, constraints: str, operands: Sequence[ir.Value], result: ir.Type | None, side_effects: bool = True
) -> ir.Value | None:
    """One inline asm op. `result` is a scalar type, a struct type (several outputs) or None.

    Raises ValueError for operands that the constraints do not name, as of layouts that the instruction does not take: LLVM would end the
    process.
    """
    outputs, inputs = operand_counts(constraints)
    if inputs != len(operands) or (outputs == 0) != (result is None):
        raise ValueError(f"the instruction takes {inputs} registers, not {len(operands)}: check layouts and shapes")
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
