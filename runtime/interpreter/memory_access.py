"""Loads, stores and atomics of the NumPy builder. Nothing runs at the same time: an atomic is a plain read-modify-write, lane by lane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.language.dtypes import dtype

from .memory import RAW, Memory, MemoryFault
from .values import Divergence, Handle, Pointers, from_real, numpy_dtype, real_values, unsigned

_RMW: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda old, new: new,
}


def raw_bits(value: Handle, itemsize: int) -> np.ndarray:
    """A block as the unsigned integers that stand for it in memory."""
    return (value.address if type(value) is Pointers else np.asarray(value)).view(RAW[itemsize])


def from_bits(raw: np.ndarray, ty: dtype) -> Handle:
    """Inverse of `raw_bits`; a loaded pointer belongs to no argument."""
    if ty.scalar.is_ptr():
        return Pointers(raw.view(np.int64), None)
    return raw.view(numpy_dtype(ty))


def combine(kind: str, old: np.ndarray, new: np.ndarray, ty: dtype) -> np.ndarray:
    """`old <kind> new` for a kind of atomic_rmw; floats round to their type."""
    if kind == "fadd":
        if ty.scalar.primitive_bitwidth >= 32:
            return old + new
        return from_real(real_values(old, ty) + real_values(new, ty), ty)
    if kind in ("umax", "umin"):
        return _RMW[kind[1:]](unsigned(old), unsigned(new)).view(old.dtype)
    return _RMW[kind](old, new)


class MemoryMixin:
    """`addptr`, `load`, `store` and the atomics."""

    memory: Memory
    batch: int  # programs that run at once; 0 for one that runs alone

    def addptr(self, ptr: Pointers, offset: np.ndarray, offset_ty: dtype, ty: dtype) -> Pointers:
        itemsize = ty.scalar.element_ty.itemsize
        offset = offset.astype(np.int64) if offset.dtype != np.int64 else offset
        return Pointers(ptr.address + (offset * itemsize if itemsize > 1 else offset), ptr.base)

    def load(
        self,
        ptr: Pointers,
        mask: np.ndarray | None,
        other: Handle | None,
        ty: dtype,
        *,
        cache: str = "",
        evict: str = "",
        volatile: bool = False,
    ) -> Handle:
        itemsize = ty.scalar.itemsize
        fill = None if other is None else raw_bits(other, itemsize)
        return from_bits(self.memory.load(ptr.address, itemsize, ptr.base, mask, fill), ty)

    def store(self, ptr: Pointers, value: Handle, mask: np.ndarray | None, ty: dtype, *, cache: str = "", evict: str = "") -> None:
        itemsize = ty.scalar.itemsize
        self.memory.store(ptr.address, raw_bits(value, itemsize), itemsize, ptr.base, mask)

    def atomic_rmw(
        self, kind: str, ptr: Pointers, value: np.ndarray, mask: np.ndarray | None, ty: dtype, *, sem: str = "acq_rel", scope: str = "gpu"
    ) -> np.ndarray:
        old = self._read_modify_write(ptr, mask, ty, lambda old, lanes: combine(kind, old, lanes(value), ty))
        self.memory.synchronize(ptr.address, mask, sem)
        return old

    def atomic_cas(
        self, ptr: Pointers, compare: np.ndarray, value: np.ndarray, ty: dtype, *, sem: str = "acq_rel", scope: str = "gpu"
    ) -> np.ndarray:
        old = self._read_modify_write(ptr, None, ty, lambda old, lanes: np.where(old == lanes(compare), lanes(value), old))
        self.memory.synchronize(ptr.address, None, sem)
        return old

    def atomic_load(self, ptr: Pointers, mask: np.ndarray | None, ty: dtype, *, sem: str = "acquire", scope: str = "gpu") -> Handle:
        itemsize = ty.scalar.itemsize
        raw = self.memory.load(ptr.address, itemsize, ptr.base, mask, access="atomic load")
        self.memory.synchronize(ptr.address, mask, sem)
        return from_bits(raw, ty)

    def atomic_store(
        self, ptr: Pointers, value: Handle, mask: np.ndarray | None, ty: dtype, *, sem: str = "release", scope: str = "gpu"
    ) -> None:
        itemsize = ty.scalar.itemsize
        self.memory.store(ptr.address, raw_bits(value, itemsize), itemsize, ptr.base, mask, access="atomic store")
        self.memory.synchronize(ptr.address, mask, sem)

    def atomic_poll(
        self, ptr: Pointers, expected: np.ndarray, timeout: np.ndarray | None, ty: dtype, *, sem: str = "acquire", scope: str = "gpu"
    ) -> np.bool_:
        if self.batch:
            raise Divergence
        found = self.atomic_load(ptr, None, ty, sem=sem)
        if found == expected:
            return np.bool_(True)
        if timeout is None:
            raise MemoryFault(
                f"atomic_poll waits for ever: memory holds {found}, not {expected}, and the interpreter runs programs one after another, "
                "so no other program can change it now"
            )
        return np.bool_(False)

    def _read_modify_write(
        self, ptr: Pointers, mask: np.ndarray | None, ty: dtype, update: Callable[[np.ndarray, Callable], np.ndarray]
    ) -> np.ndarray:
        """Replace memory by `update(old, lanes)`; `lanes` picks the lanes that `old` stands for out of an operand. Returns the old values.

        Lanes act in row-major order: each sees what earlier ones at its address have done."""
        itemsize, element = ty.scalar.itemsize, numpy_dtype(ty)
        shape = (self.batch, *ty.shape) if self.batch else ptr.address.shape  # each program of a batch acts, on one address or many
        addresses = np.broadcast_to(ptr.address, shape).ravel()
        active = np.arange(addresses.size) if mask is None else np.flatnonzero(np.broadcast_to(mask, shape))
        old = np.zeros(addresses.size, element)
        address = addresses[active]
        for turn in _turns(address):
            lanes = active[turn]
            for view, where, index in self.memory.cells(address[turn], itemsize, ptr.base):
                these = lanes if where is None else lanes[where]
                memory = view.view(element)
                before = memory[index]
                old[these] = before
                memory[index] = update(before, lambda x, these=these: np.broadcast_to(x, shape).ravel()[these])
        return old.reshape(shape)


def _turns(address: np.ndarray) -> list:
    """Split lanes into groups without a repeated address, which act one after the other; usually one group."""
    if address.size < 2 or (address[1:] > address[:-1]).all():
        return [slice(None)] if address.size else []
    order = np.argsort(address, kind="stable")
    ordered = address[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    lengths = np.diff(np.append(starts, address.size))
    occurrence = np.empty(address.size, np.int64)
    occurrence[order] = np.arange(address.size) - np.repeat(starts, lengths)
    return [np.flatnonzero(occurrence == turn) for turn in range(int(lengths.max()))]
