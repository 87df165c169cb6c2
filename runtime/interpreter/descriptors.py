"""Tensor descriptors of the NumPy builder: bounds-checked blocks of an array in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.language.dtypes import block_type, dtype

from .memory_access import combine, from_bits, raw_bits
from .values import Descriptor, Divergence, Pointers, lifted

_ALIGNMENT = 16  # bytes: what the hardware's descriptors ask of base and strides


class DescriptorMixin:
    """`make_descriptor` and the accesses through descriptors."""

    def make_descriptor(
        self, base: Pointers, shape: Sequence[np.ndarray], strides: Sequence[np.ndarray], padding: str, ty: block_type
    ) -> Descriptor:
        shape, strides = (tuple(_same_for_all(n) for n in numbers) for numbers in (shape, strides))
        if (base.address % _ALIGNMENT).any():
            raise ValueError(f"the base of a tensor descriptor must be aligned to {_ALIGNMENT} bytes, its address is {base.address:#x}")
        for i, stride in enumerate(strides[:-1]):
            if stride * ty.scalar.itemsize % _ALIGNMENT:
                raise ValueError(
                    f"the strides of a tensor descriptor must be multiples of {_ALIGNMENT} bytes, "
                    f"stride {i} is {stride} elements of {ty.scalar.itemsize} bytes"
                )
        return Descriptor(base, shape, strides, padding)

    def descriptor_load(self, desc: Descriptor, offsets: Sequence[np.ndarray], ty: block_type, *, cache: str = "", evict: str = ""):
        return self._load_tile(desc, _block_indices(offsets, ty.shape), ty)

    def descriptor_store(self, desc: Descriptor, value: np.ndarray, offsets: Sequence[np.ndarray], ty: block_type) -> None:
        self._store_tile(desc, value, _block_indices(offsets, ty.shape), ty)

    def descriptor_reduce(self, kind: str, desc: Descriptor, value: np.ndarray, offsets: Sequence[np.ndarray], ty: block_type) -> None:
        pointers, inside = _tile(desc, _block_indices(offsets, ty.shape), ty)
        if ty.scalar.is_floating():
            if kind == "add":
                self.atomic_rmw("fadd", pointers, value, inside, ty)
                return
            extremum = "minnumf" if kind == "min" else "maxnumf"
            update = lambda old, lanes: self.binary(extremum, old, lanes(value), ty)  # noqa: E731
        else:
            kind = "u" + kind if kind in ("min", "max") and ty.scalar.is_int_unsigned() else kind
            update = lambda old, lanes: combine(kind, old, lanes(value), ty)  # noqa: E731
        self._read_modify_write(pointers, inside, ty, update)

    def descriptor_gather(self, desc: Descriptor, x_offsets: np.ndarray, y_offset: np.ndarray, ty: block_type):
        return self._load_tile(desc, _row_indices(x_offsets, y_offset, ty.shape), ty)

    def descriptor_scatter(self, desc: Descriptor, value: np.ndarray, x_offsets: np.ndarray, y_offset: np.ndarray, ty: block_type) -> None:
        self._store_tile(desc, value, _row_indices(x_offsets, y_offset, ty.shape), ty)

    def _load_tile(self, desc: Descriptor, indices: list[np.ndarray], ty: block_type):
        pointers, inside = _tile(desc, indices, ty)
        fill = None
        if desc.padding == "nan":
            fill = raw_bits(self.constant(float("nan"), ty), ty.scalar.itemsize)
        raw = self.memory.load(pointers.address, ty.scalar.itemsize, pointers.base, inside, fill)
        return from_bits(_round_to_tf32(raw) if desc.tf32 else raw, ty)

    def _store_tile(self, desc: Descriptor, value: np.ndarray, indices: list[np.ndarray], ty: block_type) -> None:
        pointers, inside = _tile(desc, indices, ty)
        self.memory.store(pointers.address, raw_bits(value, ty.scalar.itemsize), ty.scalar.itemsize, pointers.base, inside)


def _round_to_tf32(bits: np.ndarray) -> np.ndarray:
    """fp32 bit patterns rounded to nearest even with 10 bits of mantissa; infinities and NaNs stay."""
    rounded = bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1)) & np.uint32(0xFFFFE000)
    return np.where(bits & np.uint32(0x7F800000) == 0x7F800000, bits, rounded)


def _same_for_all(number: np.ndarray) -> int:
    """A scalar as a Python int; a batch of programs must agree on it."""
    if np.ndim(number) == 0:
        return int(number)
    if (number != number[0]).any():
        raise Divergence
    return int(number[0])


def _block_indices(offsets: Sequence[np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    """Index along each dimension of the array, one open grid per dimension."""
    return [
        lifted(offset.astype(np.int64), len(shape)) + np.arange(size).reshape((size,) + (1,) * (len(shape) - d - 1))
        for d, (offset, size) in enumerate(zip(offsets, shape, strict=True))
    ]


def _row_indices(rows: np.ndarray, column: np.ndarray, shape: tuple[int, ...]) -> list[np.ndarray]:
    return [rows.astype(np.int64)[..., None], lifted(column.astype(np.int64), 2) + np.arange(shape[1])]


def _tile(desc: Descriptor, indices: list[np.ndarray], ty: dtype) -> tuple[Pointers, np.ndarray]:
    """(pointers to the elements, which of them lie inside the array)."""
    shape = np.broadcast_shapes(ty.shape, *(i.shape for i in indices))
    offset, inside = np.zeros(shape, np.int64), np.ones(shape, np.bool_)
    for index, size, stride in zip(indices, desc.shape, desc.strides, strict=True):
        offset = offset + index * stride
        inside &= (index >= 0) & (index < size)
    return Pointers(lifted(desc.base.address, len(ty.shape)) + offset * ty.scalar.itemsize, desc.base.base), inside
