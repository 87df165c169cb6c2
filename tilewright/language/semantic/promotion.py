"""The type in which an operation computes, and operands brought to it."""

from __future__ import annotations

from typing import Any

from ..core import tensor
from ..dtypes import bfloat16, dtype, float16, float32, float64, with_shape
from .cast import cast
from .session import Semantic
from .values import broadcast_shape, broadcast_to, constant, is_number, number_type, to_tensor


class IncompatibleTypeErrorImpl(TypeError):
    """The operation is not defined on operands of these types."""

    def __init__(self, type_a: object, type_b: object):
        self.type_a, self.type_b = type_a, type_b
        self.message = f"invalid operands of type {type_a} and {type_b}"
        super().__init__(self.message)


def integer_type(a: dtype, b: dtype) -> dtype:
    """C's usual arithmetic conversion: the wider wins; at equal width, or if it is at least as wide, the unsigned one."""
    if a.int_signedness is b.int_signedness:
        return a if a.int_bitwidth >= b.int_bitwidth else b
    unsigned, signed = (a, b) if a.is_int_unsigned() else (b, a)
    return unsigned if unsigned.int_bitwidth >= signed.int_bitwidth else signed


def computation_type(a: dtype, b: dtype, a_is_number: bool = False, b_is_number: bool = False, division: bool = False) -> dtype:
    """The type in which operands of scalar types `a` and `b` are combined.

    A Python number (`*_is_number`) beside a tensor does not take part unless its kind (bool < int < float) is higher. `division` stands for
    `/` and `%`, which no target has on 16-bit floats: those are computed in fp32."""
    if a_is_number != b_is_number:
        number, other = (a, b) if a_is_number else (b, a)
        if number.kind().value <= other.kind().value:
            return float32 if division and other in (float16, bfloat16) else other
    floats = [t for t in (a, b) if t.is_floating()]
    for ty in (float64, float32):
        if ty in floats:
            return ty
    if float16 in floats:
        return float32 if division else float16
    if bfloat16 in floats:
        return bfloat16 if a is b and not division else float32
    if floats:
        if len(floats) < 2:
            raise IncompatibleTypeErrorImpl(a, b)
        return a if a is b else float16
    if not (a.is_int() and b.is_int()):
        raise IncompatibleTypeErrorImpl(a, b)
    if division and a.int_signedness is not b.int_signedness:
        raise TypeError(f"cannot divide {a} and {b}: one is signed, the other is not; cast them to the same signedness first")
    return integer_type(a, b)


def _number_operand(s: Semantic, value: Any, ty: dtype, shape: tuple[int, ...]) -> tensor:
    if ty.is_fp8():
        return cast(s, constant(s, value, with_shape(float32, shape)), ty)
    if ty.is_int_unsigned() and value < 0:
        raise ValueError(
            f"Cannot perform a binary operation between an unsigned tensor and a negative scalar ({value}). "
            f"Cast the {ty} tensor to a signed type first"
        )
    return constant(s, value, with_shape(ty, shape))


def binary_operands(s: Semantic, a: Any, b: Any, division: bool = False) -> tuple[tensor, tensor]:
    """Both operands as tensors of one type and shape. TypeError for pointers and for what is no number."""
    a_is_number, b_is_number = is_number(a), is_number(b)
    if a_is_number and b_is_number:
        a, b = to_tensor(s, a), to_tensor(s, b)
        a_is_number = b_is_number = False
    a_ty = number_type(a) if a_is_number else to_tensor(s, a).dtype
    b_ty = number_type(b) if b_is_number else to_tensor(s, b).dtype
    if a_ty.is_ptr() or b_ty.is_ptr():
        raise IncompatibleTypeErrorImpl(a_ty, b_ty)
    ty = computation_type(a_ty, b_ty, a_is_number, b_is_number, division)
    if a_is_number:
        b = cast(s, b, ty)
        return _number_operand(s, a, ty, b.type.shape), b
    if b_is_number:
        a = cast(s, a, ty)
        return a, _number_operand(s, b, ty, a.type.shape)
    a, b = cast(s, a, ty), cast(s, b, ty)
    shape = broadcast_shape(a.type.shape, b.type.shape)
    return broadcast_to(s, a, shape), broadcast_to(s, b, shape)


def select_operands(s: Semantic, a: Any, b: Any) -> tuple[tensor, tensor]:
    """Like `binary_operands`, for `where`: two pointers of one type are operands too."""
    if isinstance(a, tensor) and isinstance(b, tensor) and (a.dtype.is_ptr() or b.dtype.is_ptr()):
        if a.dtype is not b.dtype:
            raise IncompatibleTypeErrorImpl(a.dtype, b.dtype)
        shape = broadcast_shape(a.type.shape, b.type.shape)
        return broadcast_to(s, a, shape), broadcast_to(s, b, shape)
    return binary_operands(s, a, b)


def promote(s: Semantic, *xs: tensor) -> list[tensor]:
    """All tensors at their common type and shape."""
    ty, shape = xs[0].dtype, xs[0].type.shape
    for x in xs[1:]:
        ty, shape = computation_type(ty, x.dtype), broadcast_shape(shape, x.type.shape)
    return [broadcast_to(s, cast(s, x, ty), shape) for x in xs]
