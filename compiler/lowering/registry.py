"""The table of lowering rules: op name -> plain function `(ctx, op) -> list of LLVM values`, one value per result of the op."""

from collections.abc import Callable, Sequence

from mlir import ir

Rule = Callable[..., Sequence[ir.Value]]

RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the decorated function as the rule of every op in `names`; a second rule for one name is a programming error."""

    def register(function: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"op {name} already has the lowering rule {RULES[name].__module__}.{RULES[name].__name__}")
            RULES[name] = function
        return function

    return register
