"""What a handle is in the interpreter.

A scalar or block is a NumPy array (rank 0 or a NumPy scalar for a scalar) of the dtype `numpy_dtype(ty)`: integers are signed whatever
their signedness in the language, int1 is bool, bf16 and fp8 are their bits. Pointers are `Pointers`, descriptors `Descriptor`.
Handles are never changed in place: `splat` and `broadcast` give views.

Several programs may run at once, as a *batch*. A value that differs between them has one more dimension, in front, with an element per
program; a value that is the same for all does not have it. NumPy's broadcasting lets the two mix in elementwise operations, the others
count dimensions from the back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewright.language.dtypes import dtype

from .float_formats import decode, encode, storage_dtype
from .memory import Base

UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)}
SIGNED = {u: s for s, u in UNSIGNED.items()}

_numpy_dtypes: dict[dtype, np.dtype] = {}


def numpy_dtype(ty: dtype) -> np.dtype:
    """NumPy dtype of handles of the language type `ty`, a scalar or block."""
    found = _numpy_dtypes.get(ty)
    if found is None:
        scalar = ty.scalar
        if scalar.is_ptr():
            found = np.dtype(np.int64)
        elif scalar.is_bool():
            found = np.dtype(np.bool_)
        elif scalar.is_int():
            found = np.dtype(f"i{scalar.int_bitwidth // 8}")
        else:
            found = storage_dtype(scalar.name)
        _numpy_dtypes[ty] = found
    return found


class Pointers:
    """Addresses (int64) and the pointer argument that they were computed from, if it is one."""

    __slots__ = ("address", "base")

    def __init__(self, address: np.ndarray, base: Base | None):
        self.address = address
        self.base = base


@dataclass(frozen=True)
class Descriptor:
    """An array in memory: `strides` in elements, `padding` "zero" or "nan"; `tf32`: loaded fp32 elements are rounded to tf32."""

    base: Pointers
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str
    tf32: bool = False


Handle = np.ndarray | Pointers


def shaped(function: Callable[[np.ndarray], np.ndarray], handle: Handle) -> Handle:
    """Apply a change of shape to a block of numbers or pointers."""
    if type(handle) is Pointers:
        return Pointers(function(handle.address), handle.base)
    return function(handle)


def with_shape(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """`x` in another shape with as many elements, its batch dimension kept."""
    return x.reshape(shape) if x.size == math.prod(shape) else x.reshape(-1, *shape)


def lifted(x: np.ndarray, rank: int) -> np.ndarray:
    """A scalar, ready to be combined with blocks of `rank`: a batch dimension comes in front of theirs."""
    return x.reshape(*x.shape, *(1,) * rank) if np.ndim(x) else x


class Divergence(Exception):
    """Programs of a batch need different Python values: they have to run one after another."""


def unsigned(a: np.ndarray) -> np.ndarray:
    """The bits of an integer block as unsigned; booleans stay."""
    return a if a.dtype == np.bool_ else a.view(UNSIGNED[a.dtype])


def as_signed(a: np.ndarray) -> np.ndarray:
    """The canonical, signed form of an integer block."""
    return a.view(SIGNED[a.dtype]) if a.dtype in SIGNED else a


def real_values(a: np.ndarray, ty: dtype) -> np.ndarray:
    """Values of a floating-point block as float32 or float64."""
    return decode(a, ty.scalar.name)


def from_real(values: np.ndarray, ty: dtype) -> np.ndarray:
    """float32 or float64 values rounded to the floating-point type `ty`."""
    return encode(values, ty.scalar.name)


def python_values(a: Handle, ty: dtype) -> np.ndarray:
    """Values as a user reads them: unsigned integers positive, narrow floats as float32, pointers as addresses."""
    scalar = ty.scalar
    if type(a) is Pointers:
        return a.address.view(np.uint64)
    if scalar.is_floating():
        return real_values(np.asarray(a), ty)
    return unsigned(np.asarray(a)) if scalar.is_int_unsigned() else np.asarray(a)
