"""Constants and changes of shape of the NumPy builder."""

from __future__ import annotations

import math

import numpy as np

from tilewright.language.dtypes import dtype

from .float_formats import encode
from .values import Handle, Pointers, as_signed, lifted, numpy_dtype, shaped, with_shape


class ShapeMixin:
    """`constant`, `arange` and everything that only moves elements."""

    def __init__(self) -> None:
        self._constants: dict[tuple, np.ndarray] = {}

    def constant(self, value: float, ty: dtype) -> np.ndarray:
        key = (value, ty, math.copysign(1.0, value) if value == 0 else 1.0)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = _constant(value, ty)
        return found

    def arange(self, start: int, end: int, ty: dtype) -> np.ndarray:
        return np.arange(start, end, dtype=np.int32)

    def splat(self, a: Handle, ty: dtype) -> Handle:
        return shaped(lambda x: np.broadcast_to(lifted(x, len(ty.shape)), (*x.shape, *ty.shape)), a)

    def unsplat(self, a: Handle, ty: dtype) -> Handle:
        return shaped(lambda x: with_shape(x, ()), a)

    def expand_dims(self, a: Handle, axis: int, ty: dtype) -> Handle:
        return shaped(lambda x: with_shape(x, ty.shape), a)

    def broadcast(self, a: Handle, ty: dtype) -> Handle:
        rank = len(ty.shape)
        return shaped(lambda x: np.broadcast_to(x, (*x.shape[: x.ndim - rank], *ty.shape)), a)

    def reshape(self, a: Handle, ty: dtype, allow_reorder: bool = False) -> Handle:
        return shaped(lambda x: with_shape(x, ty.shape), a)

    def trans(self, a: Handle, order: tuple[int, ...], ty: dtype) -> Handle:
        rank = len(order)
        return shaped(lambda x: x.transpose(order) if x.ndim == rank else x.transpose(0, *(d + 1 for d in order)), a)

    def join(self, a: Handle, b: Handle, ty: dtype) -> Handle:
        return _merge(lambda x, y: np.stack((x, y), axis=-1), a, b)

    def split(self, a: Handle, ty: dtype) -> tuple[Handle, Handle]:
        return shaped(lambda x: x[..., 0], a), shaped(lambda x: x[..., 1], a)

    def cat(self, a: Handle, b: Handle, dim: int, ty: dtype) -> Handle:
        return _merge(lambda x, y: np.concatenate((x, y), axis=dim - len(ty.shape)), a, b)

    def gather(self, src: Handle, indices: np.ndarray, axis: int, ty: dtype) -> Handle:
        axis -= len(ty.shape)
        size = (src.address if type(src) is Pointers else src).shape[axis]
        bad = (indices < 0) | (indices >= size)
        if bad.any():
            raise IndexError(f"gather: index {int(indices[bad].flat[0])} is out of range for a dimension of size {size}")

        def pick(x: np.ndarray) -> np.ndarray:
            at = indices.astype(np.intp)
            if x.ndim < at.ndim:
                x = np.broadcast_to(x, (at.shape[0], *x.shape))
            elif at.ndim < x.ndim:
                at = np.broadcast_to(at, (x.shape[0], *at.shape))
            return np.take_along_axis(x, at, axis)

        return shaped(pick, src)

    def histogram(self, a: np.ndarray, mask: np.ndarray | None, source: dtype, ty: dtype) -> np.ndarray:
        bins = ty.shape[0]
        counted = (a >= 0) & (a < bins)
        if mask is not None:
            counted = counted & mask
        if counted.ndim > 1:
            rows = zip(np.broadcast_to(a, counted.shape), counted, strict=True)
            return np.stack([np.bincount(row[c], minlength=bins) for row, c in rows]).astype(np.int32)
        return np.bincount(a[counted], minlength=bins).astype(np.int32)


def _constant(value: float, ty: dtype) -> np.ndarray:
    scalar = ty.scalar
    if scalar.is_floating():
        element = encode(np.float64(value), scalar.name)
    elif scalar.is_bool():
        element = np.bool_(value)
    else:
        element = as_signed(np.array(value, f"{'i' if value < 0 else 'u'}{scalar.int_bitwidth // 8}"))
    found = np.full(ty.shape, element, numpy_dtype(ty))
    found.setflags(write=False)
    return found


def _merge(function, a: Handle, b: Handle) -> Handle:
    if type(a) is Pointers:
        return Pointers(function(*np.broadcast_arrays(a.address, b.address)), a.base if a.base is b.base else None)
    return function(*np.broadcast_arrays(a, b))
