"""Constants, Python numbers as tensors, and broadcasting."""

from __future__ import annotations

import math
import numbers
from typing import Any

from ..core import shown, tensor
from ..dtypes import dtype, float32, float64, int1, int32, int64, uint32, uint64, with_shape
from .session import Semantic

_FLOAT32_MIN_NORMAL = 2.0**-126
_FLOAT32_MAX = (2 - 2**-23) * 2.0**127


def is_number(x: Any) -> bool:
    return isinstance(x, numbers.Number)


def number_type(x: float) -> dtype:
    """The type of a Python number that stands alone: int1; the first of int32, uint32, int64, uint64 that holds it; float32, or float64 for
    what is no normal float32."""
    if isinstance(x, bool):
        return int1
    if isinstance(x, numbers.Integral):
        for ty in (int32, uint32, int64, uint64):
            if ty.get_int_min_value() <= x <= ty.get_int_max_value():
                return ty
        raise ValueError(f"integer {x} does not fit in 64 bits")
    if isinstance(x, numbers.Real):
        magnitude = abs(float(x))
        exact = magnitude == 0 or math.isinf(magnitude) or math.isnan(magnitude)
        return float32 if exact or _FLOAT32_MIN_NORMAL <= magnitude <= _FLOAT32_MAX else float64
    raise TypeError(f"{shown(x)} of type {type(x).__name__} is no number of the language; bool, int and float are")


def constant(s: Semantic, value: float, ty: dtype) -> tensor:
    """The number as type `ty` (a scalar, or a block: splat). ValueError if it does not fit an integer type."""
    scalar = ty.scalar
    if scalar.is_bool():
        value = bool(value)
    elif scalar.is_int():
        if not math.isfinite(value) or value != int(value):
            raise ValueError(f"{value} is no integer, and type {scalar} was asked for")
        value = int(value)
        if not scalar.get_int_min_value() <= value <= scalar.get_int_max_value():
            raise ValueError(
                f"Scalar {value} is out of range for type {scalar} ({scalar.get_int_min_value()} to {scalar.get_int_max_value()})"
            )
    elif scalar.is_floating():
        value = float(value)
    else:
        raise TypeError(f"a number cannot be of type {scalar}")
    return tensor(s.builder.constant(value, ty), ty)


def to_tensor(s: Semantic, x: Any) -> tensor:
    """A tensor as it is, a Python number as a scalar tensor. TypeError for anything else."""
    if isinstance(x, tensor):
        return x
    if is_number(x):
        return constant(s, x, number_type(x))
    raise TypeError(f"cannot convert {_describe(x)} to tensor; a tensor, bool, int or float is needed")


def _describe(x: Any) -> str:
    return "None" if x is None else f"{shown(x)} of type {type(x).__name__}"


def expect_tensor(x: Any, what: str) -> tensor:
    """`x` if it is a tensor, else TypeError naming the argument `what`."""
    if not isinstance(x, tensor):
        raise TypeError(f"{what} must be a tensor, got {_describe(x)}")
    return x


def broadcast_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's rule: align on the right, sizes are equal or one of them is 1. ValueError otherwise."""
    if a == b:
        return a
    rank = max(len(a), len(b))
    a_full, b_full = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    for i, (m, n) in enumerate(zip(a_full, b_full)):
        if m != n and m != 1 and n != 1:
            raise ValueError(f"cannot broadcast shapes {list(a)} and {list(b)}: incompatible dimensions at index {i}: {m} and {n}")
    return tuple(n if m == 1 else m for m, n in zip(a_full, b_full))


def broadcast_to(s: Semantic, x: tensor, shape: tuple[int, ...]) -> tensor:
    """`x` repeated to `shape`; dimensions are added on the left. ValueError if it does not broadcast to exactly that."""
    have = x.type.shape
    if have == shape:
        return x
    if broadcast_shape(have, shape) != shape:
        raise ValueError(f"cannot broadcast a tensor of shape {list(have)} to {list(shape)}")
    ty = with_shape(x.dtype, shape)
    if not have:
        return tensor(s.builder.splat(x.handle, ty), ty)
    handle = x.handle
    while len(have) < len(shape):
        have = (1, *have)
        handle = s.builder.expand_dims(handle, 0, with_shape(x.dtype, have))
    return tensor(handle if have == shape else s.builder.broadcast(handle, ty), ty)


def broadcast_all(s: Semantic, *xs: tensor) -> list[tensor]:
    """All tensors at their common shape."""
    shape: tuple[int, ...] = ()
    for x in xs:
        shape = broadcast_shape(shape, x.type.shape)
    return [broadcast_to(s, x, shape) for x in xs]
