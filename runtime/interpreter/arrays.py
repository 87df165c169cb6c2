"""The arrays of a launch made addressable: NumPy arrays and torch CPU tensors in place, CUDA arrays by a copy to the host and back.

A pointer argument may be used for the whole allocation that it points into (the torch storage, the NumPy array that owns the data),
since kernels reach past a view on purpose. torch is never imported here: only its objects, if the caller has some, are used.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.compiler.frontend.function import TYPE_CODES

from .memory import Allocation, Base, Memory


def element_code(dtype: Any) -> str:
    """Signature code ("fp32", "i8", "bf16") of a NumPy, torch or language dtype; TypeError if kernels have no such type."""
    name = str(getattr(dtype, "name", None) or dtype).rsplit(".", 1)[-1]
    code = TYPE_CODES.get(name)
    if code is None:
        accepted = ", ".join(sorted({*TYPE_CODES.values()} - {"void"}))
        raise TypeError(f"arrays of dtype {dtype} cannot be used in a kernel; accepted are {accepted}")
    return code


def code_bytes(code: str) -> int:
    """Bytes that one element takes in memory ("u1" takes one)."""
    bits = {"u1": 8, "bf16": 16}.get(code) or (8 if code.startswith("fp8") else int(code[2:] if code.startswith("fp") else code[1:]))
    return bits // 8


def is_array(value: Any) -> bool:
    """Whether a launch argument is passed as a pointer; NumPy's scalars are numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return isinstance(value, np.ndarray)
    return hasattr(value, "dtype") and any(hasattr(value, name) for name in ("data_ptr", "__cuda_array_interface__", "__array_interface__"))


class LaunchArrays:
    """Attaches arrays to the memory of one launch; `finish` copies changed device memory back."""

    def __init__(self, memory: Memory):
        self.memory = memory
        self._copies: list[tuple[Allocation, Callable[[np.ndarray], None]]] = []

    def attach(self, name: str, array: Any) -> tuple[str, Base]:
        """(element code, pointer base) of an array argument."""
        code = element_code(array.dtype)
        holder = array
        while not isinstance(holder, np.ndarray) and not _is_torch(holder) and hasattr(holder, "base"):
            holder = holder.base  # `reinterpret(tensor, dtype)`: the memory of the tensor under another dtype
        if isinstance(holder, np.ndarray):
            address, allocation = self._numpy(holder)
        elif _is_torch(holder):
            address, allocation = self._torch(holder)
        elif hasattr(holder, "__cuda_array_interface__"):
            address, allocation = self._cuda_interface(holder.__cuda_array_interface__)
        else:
            address, allocation = self._numpy(np.asarray(holder))
        return code, self.memory.add_base(name, address, code_bytes(code), allocation, *_extents(holder, code_bytes(code)))

    def finish(self) -> None:
        """Copy what the kernel wrote back to the devices it came from."""
        for allocation, copy_back in self._copies:
            if allocation.written:
                copy_back(allocation.data)

    def _numpy(self, array: np.ndarray) -> tuple[int, Allocation]:
        if array.dtype.hasobject:
            raise TypeError("arrays of Python objects cannot be used in a kernel")
        if not array.dtype.isnative:
            raise TypeError(f"the bytes of {array.dtype.str} are swapped: use array.astype(array.dtype.newbyteorder('='))")
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        low, high = _byte_bounds(owner)
        make = lambda: (_host_bytes(low, high - low), array.flags.writeable)  # noqa: E731
        return array.__array_interface__["data"][0], self.memory.add(low, high - low, make)

    def _torch(self, tensor: Any) -> tuple[int, Allocation]:
        if tensor.device.type == "meta" or str(tensor.layout) != "torch.strided":
            raise TypeError(f"a tensor on {tensor.device} with layout {tensor.layout} has no elements in memory that a kernel can use")
        storage = tensor.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        if tensor.device.type == "cpu":
            return tensor.data_ptr(), self.memory.add(start, size, lambda: (_host_bytes(start, size), True))
        torch = sys.modules["torch"]
        on_device = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
        known = len(self.memory.allocations)
        allocation = self.memory.add(start, size, lambda: (on_device.cpu().numpy(), True))
        if len(self.memory.allocations) > known:
            self._copies.append((allocation, lambda host: on_device.copy_(torch.from_numpy(host))))
        return tensor.data_ptr(), allocation

    def _cuda_interface(self, interface: dict) -> tuple[int, Allocation]:
        from cuda.bindings import runtime as cuda

        address, read_only = interface["data"]
        itemsize = np.dtype(interface["typestr"]).itemsize
        strides = interface.get("strides") or _row_major(interface["shape"], itemsize)
        reach = sum((n - 1) * s for n, s in zip(interface["shape"], strides, strict=True)) if all(interface["shape"]) else -itemsize
        size = reach + itemsize

        def copy(target: int, source: int) -> None:
            (status,) = cuda.cudaMemcpy(target, source, size, cuda.cudaMemcpyKind.cudaMemcpyDefault)
            if status != cuda.cudaError_t.cudaSuccess:
                raise RuntimeError(f"cannot copy an argument between the GPU and the host: {status.name}")

        def make() -> tuple[np.ndarray, bool]:
            host = np.empty(size, np.uint8)
            copy(host.ctypes.data, address)
            return host, not read_only

        known = len(self.memory.allocations)
        allocation = self.memory.add(address, size, make)
        if len(self.memory.allocations) > known:
            self._copies.append((allocation, lambda host: copy(address, host.ctypes.data)))
        return address, allocation


def _extents(array: Any, itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape, and strides in bytes."""
    shape = tuple(array.shape)
    if _is_torch(array):
        return shape, tuple(n * itemsize for n in array.stride())
    interface = getattr(array, "__array_interface__", None) or array.__cuda_array_interface__
    return shape, interface.get("strides") or _row_major(shape, itemsize)


def _is_torch(value: Any) -> bool:
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def _host_bytes(start: int, size: int) -> np.ndarray:
    return np.frombuffer((ctypes.c_uint8 * size).from_address(start), np.uint8) if size else np.empty(0, np.uint8)


def _byte_bounds(array: np.ndarray) -> tuple[int, int]:
    start = array.__array_interface__["data"][0]
    if not array.size:
        return start, start
    spans = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    return start + sum(s for s in spans if s < 0), start + sum(s for s in spans if s > 0) + array.itemsize


def _row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = [itemsize]
    for n in reversed(shape[1:]):
        strides.append(strides[-1] * n)
    return tuple(reversed(strides)) if shape else ()
