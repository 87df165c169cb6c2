"""Conversions between types: the cast matrix, bitcasts, and which fp8 types a target has."""

from __future__ import annotations

import struct
from typing import Any

from ..core import builtin, constexpr, tensor
from ..dtypes import dtype, float32, int1, int64, with_shape
from .session import Semantic
from .values import constant, is_number, number_type, to_tensor

ROUNDINGS = ("rtne", "rtz")


def check_supported(s: Semantic, ty: dtype) -> None:
    """ValueError if `ty` is an fp8 type that the target does not have."""
    supported = s.option("supported_fp8_dtypes")
    if ty.is_fp8() and ty.name not in supported:
        raise ValueError(f"type {ty} not supported in this architecture. The supported fp8 dtypes are {tuple(supported)}")


def expect_dtype(ty: Any, what: str) -> dtype:
    """The scalar type of `ty`; TypeError naming the argument `what` if it is no type."""
    ty = ty.value if isinstance(ty, constexpr) else ty
    if not isinstance(ty, dtype) or ty.is_void():
        raise TypeError(f"{what} must be a type such as tl.float32, got {ty!r}")
    return ty.scalar


def emit_cast(s: Semantic, kind: str, x: tensor, scalar: dtype, rounding: str | None = None) -> tensor:
    """One conversion operation of the builder; no checks."""
    ty = x.type.with_element_ty(scalar)
    return tensor(s.builder.cast(kind, x.handle, x.type, ty, rounding), ty)


def _not_zero(s: Semantic, x: tensor) -> tensor:
    zero = constant(s, 0, x.type)
    ty = x.type.with_element_ty(int1)
    return tensor(s.builder.compare("une" if x.dtype.is_floating() else "ne", x.handle, zero.handle, x.type), ty)


def _float_to_float(s: Semantic, x: tensor, ty: dtype, rounding: str | None) -> tensor:
    if x.dtype.is_fp8() and ty.is_fp8():
        x = emit_cast(s, "fp_to_fp", x, float32)
    narrowing = ty.primitive_bitwidth < x.dtype.primitive_bitwidth
    return emit_cast(s, "fp_to_fp", x, ty, rounding if narrowing else None)


def _integer_to_integer(s: Semantic, x: tensor, ty: dtype) -> tensor:
    have, want = x.dtype.int_bitwidth, ty.int_bitwidth
    if have == want:
        return tensor(x.handle, x.type.with_element_ty(ty))
    kind = "trunci" if want < have else "extsi" if x.dtype.is_int_signed() else "extui"
    return emit_cast(s, kind, x, ty)


def cast(s: Semantic, x: tensor, ty: dtype, rounding: str | None = None) -> tensor:
    """`x` with the scalar type `ty`, converted by value. `rounding` only for a float to a narrower float."""
    src = x.dtype
    if rounding is not None:
        if rounding not in ROUNDINGS:
            raise ValueError(f"fp_downcast_rounding {rounding!r} not supported; accepted: {', '.join(ROUNDINGS)}")
        if not (src.is_floating() and ty.is_floating() and ty.primitive_bitwidth < src.primitive_bitwidth):
            raise ValueError(f"fp_downcast_rounding applies only to a float that is cast to a narrower float, not to {src} cast to {ty}")
    if src is ty:
        return x
    check_supported(s, src)
    check_supported(s, ty)
    if src.is_floating():
        if ty.is_floating():
            return _float_to_float(s, x, ty, rounding)
        if ty.is_int():
            if src.primitive_bitwidth < 32:
                x = emit_cast(s, "fp_to_fp", x, float32)
            return _not_zero(s, x) if ty.is_bool() else emit_cast(s, "fptosi" if ty.is_int_signed() else "fptoui", x, ty)
    elif src.is_int():
        if ty.is_bool():
            return _not_zero(s, x)
        if ty.is_int():
            return _integer_to_integer(s, x, ty)
        if ty.is_fp8():
            return _float_to_float(s, cast(s, x, float32), ty, None)
        if ty.is_floating():
            return emit_cast(s, "sitofp" if src.is_int_signed() else "uitofp", x, ty)
        if ty.is_ptr():
            return emit_cast(s, "int_to_ptr", cast(s, x, int64), ty)
    elif src.is_ptr():
        if ty.is_ptr():
            return emit_cast(s, "bitcast", x, ty)
        if ty.is_int() and ty.int_bitwidth == 64:
            return emit_cast(s, "ptr_to_int", x, ty)
        if ty.is_bool():
            return _not_zero(s, emit_cast(s, "ptr_to_int", x, int64))
    raise ValueError(f"cannot cast {src} to {ty}" + ("; a pointer casts to int64, int1 or another pointer" if src.is_ptr() else ""))


def bitcast(s: Semantic, x: tensor, ty: dtype) -> tensor:
    """`x` with its bits read as the scalar type `ty` of the same width."""
    src = x.dtype
    if src is ty:
        return x
    if src.is_ptr() or ty.is_ptr():
        return cast(s, x, ty)
    if src.primitive_bitwidth != ty.primitive_bitwidth:
        raise ValueError(f"Cannot bitcast data-type of size {src.primitive_bitwidth} to data-type of size {ty.primitive_bitwidth}")
    if src.is_int() and ty.is_int():
        return tensor(x.handle, x.type.with_element_ty(ty))
    return emit_cast(s, "bitcast", x, ty)


def convert(s: Semantic, x: Any, ty: dtype, shape: tuple[int, ...] = ()) -> tensor:
    """A tensor cast to the scalar type `ty`; a Python number as a constant of `ty` and `shape`, of the value that a cast of its own type
    gives."""
    if is_number(x):
        if number_type(x) is float32:
            x = struct.unpack("f", struct.pack("f", x))[0]
        if ty.is_bool():
            return constant(s, bool(x), with_shape(ty, shape))
        if ty.is_standard_floating() and (isinstance(x, float) or abs(x) < 2**53):
            return constant(s, float(x), with_shape(ty, shape))
        if ty.is_int() and not isinstance(x, float):
            low = ty.get_int_min_value()
            return constant(s, (x - low) % 2**ty.int_bitwidth + low, with_shape(ty, shape))
    return cast(s, to_tensor(s, x), ty)


@builtin
def builtin_cast(input, dtype, fp_downcast_rounding=None, bitcast=False, _semantic=None):
    """Convert a tensor or number to `dtype`.

    Floats round to nearest even, or toward zero with `fp_downcast_rounding="rtz"`; to integers they truncate; anything to int1 is `!= 0`.
    `bitcast=True` reads the bits anew instead; the widths must be equal."""
    ty = expect_dtype(dtype, "dtype")
    x = to_tensor(_semantic, input)
    if bitcast:
        check_supported(_semantic, ty)
        return _bitcast(_semantic, x, ty)
    return cast(_semantic, x, ty, fp_downcast_rounding)


_bitcast = bitcast
builtin_cast.__name__ = builtin_cast.__qualname__ = "cast"


@builtin
def builtin_to_tensor(x, _semantic=None):
    """A Python number as a scalar tensor: bool as int1, int as the first of int32, uint32, int64, uint64 that holds it, float as float32
    (float64 if float32 has no normal value for it). Tensors stay."""
    return to_tensor(_semantic, x)


builtin_to_tensor.__name__ = builtin_to_tensor.__qualname__ = "to_tensor"
