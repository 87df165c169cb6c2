"""What the Python of a kernel means where it differs from plain Python: the functions that `rewrite` puts into kernels."""

from __future__ import annotations

import builtins
import functools
from typing import Any

from tilewright.language import core, iterators
from tilewright.language.semantic import arith, debug
from tilewright.language.semantic.values import to_tensor

_NUMBERS = (bool, int, float)


def variable(value: Any) -> Any:
    """What a variable holds when `value` is assigned to it: Python numbers become scalar tensors, in tuples too."""
    if isinstance(value, core.constexpr):
        value = value.value
    if type(value) in _NUMBERS:
        return to_tensor(core.active(), value)
    if isinstance(value, (builtins.tuple, list)):
        items = [variable(v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else core.tuple(items)
    return value


def constant(value: Any) -> Any:
    """What a name declared `tl.constexpr` holds: the value itself, which must be known at compile time."""
    if core.flatten(value):
        raise TypeError(f"a name declared tl.constexpr gets {value}, which is known only at run time")
    return core.unwrap(value)


def with_methods(value: Any) -> Any:
    """Numbers have the methods of tensors, so that an argument specialized to a constant can be used like any other."""
    if type(value) in _NUMBERS:
        return to_tensor(core.active(), value)
    return value


def with_value(value: Any) -> Any:
    """`.value` of a constant is the constant, whether it is wrapped or not."""
    return value if hasattr(value, "value") else core.constexpr(value)


def and_goes_on(left: Any) -> bool:
    """Whether the right side of `left and ...` is evaluated: constants decide at once, tensors never do."""
    return isinstance(left, core.tensor) or bool(left)


def or_goes_on(left: Any) -> bool:
    """Whether the right side of `left or ...` is evaluated."""
    return isinstance(left, core.tensor) or not left


def both(left: Any, right: Any) -> Any:
    """`left and right`, both evaluated."""
    if not isinstance(left, core.tensor):
        return right
    if not isinstance(right, core.base_value):
        return left if right else False
    return left.logical_and(right)


def either(left: Any, right: Any) -> Any:
    """`left or right`, both evaluated."""
    if not isinstance(left, core.tensor):
        return right
    if not isinstance(right, core.base_value):
        return True if right else left
    return left.logical_or(right)


def plain(value: Any) -> Any:
    """A constexpr as the object in it, so that `is` compares what the user means; anything else as it is."""
    return value.value if isinstance(value, core.constexpr) else value


def negation(value: Any) -> Any:
    """`not value`."""
    return value.__not__() if isinstance(value, core.tensor) else not value


def check(condition: Any, message: Any = "") -> None:
    """`assert condition, message`."""
    debug.device_assert(condition, message)


def _extremum(fn: Any, elementwise: Any) -> Any:
    @functools.wraps(fn)
    def run(*args: Any) -> Any:
        args = core.unwrap(args[0] if len(args) == 1 and isinstance(args[0], (builtins.tuple, list)) else args)
        return functools.reduce(elementwise, args) if core.flatten(args) else fn(args)

    return run


def _isinstance(value: Any, classes: Any) -> bool:
    wanted = classes if isinstance(classes, builtins.tuple) else (classes,)
    if core.constexpr in wanted and not isinstance(value, (core.base_value, builtins.tuple)):
        return True
    if core.tuple in wanted and isinstance(value, builtins.tuple):
        return True  # a tuple of the kernel is Python's until it is assigned
    return isinstance(value, wanted)


def _abs(value: Any) -> Any:
    from tilewright.language.semantic import math

    return math.abs(value) if isinstance(value, core.tensor) else abs(value)


# Python's builtin -> what it means in a kernel
BUILTINS = {
    range: iterators.range,
    min: _extremum(min, arith.minimum),
    max: _extremum(max, arith.maximum),
    isinstance: _isinstance,
    abs: _abs,
}
