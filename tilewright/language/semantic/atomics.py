"""Atomic operations on memory."""

from __future__ import annotations

from typing import Any

from ..builder import ATOMIC_SCOPES, ATOMIC_SEMANTICS
from ..core import builtin, shown, tensor
from ..dtypes import bfloat16, dtype, float16, float32, float64, int1, int16, int32, int64, pointer_type, uint32, uint64
from .arith import compare, emit_binary, emit_select, logical_not
from .cast import bitcast, cast, convert
from .memory import mask_argument, pointer_argument, writable
from .session import Semantic
from .values import broadcast_to, to_tensor

_INTEGERS = (int32, uint32, int64, uint64)
_ADDABLE = (*_INTEGERS, float16, bfloat16, float32, float64)
_SIGNED_OF_WIDTH = {16: int16, 32: int32, 64: int64}


def _choice(value: Any, default: str, accepted: tuple[str, ...], what: str) -> str:
    value = default if value is None else value
    if value not in accepted:
        raise ValueError(f"Memory {what} {value} not supported; accepted: {', '.join(accepted)}")
    return value


def _order(sem: Any, scope: Any, default: str = "acq_rel", accepted: tuple[str, ...] = ATOMIC_SEMANTICS) -> dict[str, str]:
    return {"sem": _choice(sem, default, accepted, "semantic"), "scope": _choice(scope, "gpu", ATOMIC_SCOPES, "scope")}


def _handle(x: tensor | None) -> Any:
    return None if x is None else x.handle


def _as_integers(s: Semantic, ptr: tensor) -> tensor:
    """A pointer to floats as one to the signed integers of that width."""
    element = ptr.dtype.element_ty
    if element.is_int():
        return ptr
    return cast(s, ptr, pointer_type(_SIGNED_OF_WIDTH[element.primitive_bitwidth], ptr.dtype.address_space))


def _operands(s: Semantic, op: str, ptr: Any, val: Any, mask: Any, accepted: tuple[dtype, ...]) -> tuple[tensor, tensor, tensor | None]:
    """Pointer, value and mask of a read-modify-write, checked and of the pointer's shape."""
    ptr = pointer_argument(ptr, op)
    writable(ptr)
    element = ptr.dtype.element_ty
    if element not in accepted:
        raise ValueError(f"{op} does not support {element}; accepted: {', '.join(t.name for t in accepted)}")
    shape = ptr.type.shape
    val = convert(s, val, element, shape)
    if not shape and val.type.is_block():
        raise ValueError(f"Value argument of {op} cannot be block type if pointer argument is not a block")
    return ptr, broadcast_to(s, val, shape), mask_argument(s, mask, shape)


def _rmw(s: Semantic, kind: str, ptr: tensor, val: tensor, mask: tensor | None, order: dict[str, str]) -> tensor:
    return tensor(s.builder.atomic_rmw(kind, ptr.handle, val.handle, _handle(mask), val.type, **order), val.type)


def _float_extremum(s: Semantic, is_max: bool, ptr: tensor, val: tensor, mask: tensor | None, order: dict[str, str]) -> tensor:
    """Floats of one sign are ordered like their bits: as signed integers if positive, in reverse as unsigned ones if negative."""
    bits = bitcast(s, val, _SIGNED_OF_WIDTH[val.dtype.primitive_bitwidth])
    int_ptr = _as_integers(s, ptr)
    positive = compare(s, "ge", bits, 0)
    negative = logical_not(positive, _semantic=s)
    if mask is not None:
        positive_mask, negative_mask = emit_binary(s, "andi", mask, positive), emit_binary(s, "andi", mask, negative)
    else:
        positive_mask, negative_mask = positive, negative
    up = _rmw(s, "max" if is_max else "min", int_ptr, bits, positive_mask, order)
    down = _rmw(s, "umin" if is_max else "umax", int_ptr, bits, negative_mask, order)
    return bitcast(s, emit_select(s, positive, up, down), val.dtype)


def _extremum(s: Semantic, op: str, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> tensor:
    ptr, val, mask = _operands(s, op, ptr, val, mask, (*_INTEGERS, float32, float64))
    order, is_max = _order(sem, scope), op == "atomic_max"
    if val.dtype.is_floating():
        return _float_extremum(s, is_max, ptr, val, mask, order)
    return _rmw(s, ("" if val.dtype.is_int_signed() else "u") + ("max" if is_max else "min"), ptr, val, mask, order)


@builtin
def atomic_add(pointer, val, mask=None, sem=None, scope=None, _semantic=None):
    """Add `val` to memory; returns the old value. f16, bf16, f32, f64 and 32- or 64-bit integers.

    `sem`: "acquire", "release", "acq_rel" (default) or "relaxed". `scope`: "gpu" (default), "cta" or "sys"."""
    ptr, val, mask = _operands(_semantic, "atomic_add", pointer, val, mask, _ADDABLE)
    return _rmw(_semantic, "fadd" if val.dtype.is_floating() else "add", ptr, val, mask, _order(sem, scope))


@builtin
def atomic_max(pointer, val, mask=None, sem=None, scope=None, _semantic=None):
    """Replace memory by the larger of it and `val`; returns the old value. 32- and 64-bit integers and floats."""
    return _extremum(_semantic, "atomic_max", pointer, val, mask, sem, scope)


@builtin
def atomic_min(pointer, val, mask=None, sem=None, scope=None, _semantic=None):
    """Replace memory by the smaller of it and `val`; returns the old value. 32- and 64-bit integers and floats."""
    return _extremum(_semantic, "atomic_min", pointer, val, mask, sem, scope)


@builtin
def atomic_and(pointer, val, mask=None, sem=None, scope=None, _semantic=None):
    """Memory &= val; returns the old value. 32- and 64-bit integers."""
    return _rmw(_semantic, "and", *_operands(_semantic, "atomic_and", pointer, val, mask, _INTEGERS), _order(sem, scope))


@builtin
def atomic_or(pointer, val, mask=None, sem=None, scope=None, _semantic=None):
    """Memory |= val; returns the old value. 32- and 64-bit integers."""
    return _rmw(_semantic, "or", *_operands(_semantic, "atomic_or", pointer, val, mask, _INTEGERS), _order(sem, scope))


@builtin
def atomic_xor(pointer, val, mask=None, sem=None, scope=None, _semantic=None):
    """Memory ^= val; returns the old value. 32- and 64-bit integers."""
    return _rmw(_semantic, "xor", *_operands(_semantic, "atomic_xor", pointer, val, mask, _INTEGERS), _order(sem, scope))


@builtin
def atomic_xchg(pointer, val, mask=None, sem=None, scope=None, _semantic=None):
    """Replace memory by `val`; returns the old value. 32- and 64-bit integers and floats."""
    s = _semantic
    ptr, val, mask = _operands(s, "atomic_xchg", pointer, val, mask, (*_INTEGERS, float32, float64))
    element = val.dtype
    bits = bitcast(s, val, _SIGNED_OF_WIDTH[element.primitive_bitwidth]) if element.is_floating() else val
    return bitcast(s, _rmw(s, "xchg", _as_integers(s, ptr), bits, mask, _order(sem, scope)), element)


def _wide(op: str, ptr: Any, widths: tuple[int, ...]) -> tensor:
    ptr = pointer_argument(ptr, op)
    element = ptr.dtype.element_ty
    if element.primitive_bitwidth not in widths or element.is_ptr():
        raise ValueError(f"{op} only supports elements with width {set(widths)}, got {element}")
    return ptr


@builtin
def atomic_cas(pointer, cmp, val, sem=None, scope=None, _semantic=None):
    """Replace memory by `val` where it equals `cmp`, compared by bits; returns the old value. 16-, 32- and 64-bit elements."""
    s = _semantic
    ptr = _wide("atomic_cas", pointer, (16, 32, 64))
    writable(ptr)
    element = ptr.dtype.element_ty
    bits = element if element.is_int() else _SIGNED_OF_WIDTH[element.primitive_bitwidth]
    compare_with, new = (bitcast(s, broadcast_to(s, convert(s, v, element, ptr.type.shape), ptr.type.shape), bits) for v in (cmp, val))
    handle = s.builder.atomic_cas(_as_integers(s, ptr).handle, compare_with.handle, new.handle, new.type, **_order(sem, scope))
    return bitcast(s, tensor(handle, new.type), element)


@builtin
def atomic_load(pointer, mask=None, sem=None, scope=None, _semantic=None):
    """Read memory in one access that is ordered by `sem` ("acquire", the default, or "relaxed")."""
    s = _semantic
    ptr = _wide("atomic_load", pointer, (8, 16, 32, 64))
    ty = ptr.type.with_element_ty(ptr.dtype.element_ty)
    order = _order(sem, scope, "acquire", ("acquire", "relaxed"))
    return tensor(s.builder.atomic_load(ptr.handle, _handle(mask_argument(s, mask, ty.shape)), ty, **order), ty)


@builtin
def atomic_store(pointer, val, mask=None, sem=None, scope=None, _semantic=None):
    """Write memory in one access that is ordered by `sem` ("release", the default, or "relaxed")."""
    s = _semantic
    ptr = _wide("atomic_store", pointer, (8, 16, 32, 64))
    writable(ptr)
    val = broadcast_to(s, convert(s, val, ptr.dtype.element_ty, ptr.type.shape), ptr.type.shape)
    order = _order(sem, scope, "release", ("release", "relaxed"))
    s.builder.atomic_store(ptr.handle, val.handle, _handle(mask_argument(s, mask, ptr.type.shape)), val.type, **order)


@builtin
def atomic_poll(pointer, expected_value, sem=None, scope=None, timeout_ns=None, _semantic=None):
    """Read the integer at a scalar pointer until it equals `expected_value`, or `timeout_ns` nanoseconds have passed. Returns int1: equal.

    `sem`: "acquire" (default) or "relaxed"."""
    s = _semantic
    ptr = _wide("atomic_poll", pointer, (16, 32, 64))
    element = ptr.dtype.element_ty
    if ptr.type.is_block() or not element.is_int():
        raise ValueError(f"atomic_poll needs a scalar pointer to 16-, 32- or 64-bit integers, got {shown(ptr)}")
    expected = convert(s, expected_value, element)
    timeout = None if timeout_ns is None else cast(s, to_tensor(s, timeout_ns), int64)
    order = _order(sem, scope, "acquire", ("acquire", "relaxed"))
    return tensor(s.builder.atomic_poll(ptr.handle, expected.handle, _handle(timeout), element, **order), int1)
