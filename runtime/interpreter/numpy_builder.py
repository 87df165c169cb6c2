"""The NumPy builder: carries out the operations of the language at once, a whole block at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.language.dtypes import dtype

from . import libdevice
from .descriptors import DescriptorMixin
from .elementwise import ElementwiseMixin, saturating_integer
from .memory import Memory
from .memory_access import MemoryMixin
from .products import ProductMixin
from .regions import RegionMixin
from .shapes import ShapeMixin
from .values import Divergence, Handle, numpy_dtype, python_values


class DeviceAssertion(AssertionError):
    """A `device_assert` or `assert` of the kernel does not hold."""


class NumpyBuilder(ShapeMixin, ElementwiseMixin, MemoryMixin, DescriptorMixin, ProductMixin, RegionMixin):
    """`language.builder.Builder` over NumPy, for the programs that `place` names. Handles are those of `values`."""

    def __init__(self, memory: Memory, grid: tuple[int, int, int]):
        super().__init__()
        self.memory = memory
        self.grid = grid
        self.place([(0, 0, 0)])

    def place(self, programs: Sequence[tuple[int, int, int]]) -> None:
        """Run as the program at this place of the grid, or as a batch of several."""
        self.programs = programs
        self.batch = len(programs) if len(programs) > 1 else 0
        self.memory.enter(programs)
        self._ids = [np.array(ids, np.int32) if len(set(ids)) > 1 else np.int32(ids[0]) for ids in zip(*programs, strict=True)]

    def program_id(self, axis: int) -> np.ndarray:
        return self._ids[axis]

    def num_programs(self, axis: int) -> np.int32:
        return np.int32(self.grid[axis])

    def extern_call(
        self, symbol: str, lib_name: str, lib_path: str, args: Sequence[np.ndarray], types: Sequence[dtype], ty: dtype, *, pure: bool
    ) -> np.ndarray:
        function = libdevice.lookup(symbol)
        if function is None:
            raise NotImplementedError(
                f"the external function {symbol} cannot be interpreted: only those of libdevice (__nv_*) can; run the kernel compiled"
            )
        result = np.asarray(function(*(np.asarray(a) for a in args)))
        wanted = numpy_dtype(ty)
        if result.dtype.kind == "f" and wanted.kind == "i":
            return saturating_integer(np.trunc(result.astype(np.float64)), result.dtype.itemsize * 8, wanted.itemsize * 8, signed=True)
        return result.astype(wanted)

    def inline_asm(
        self, asm: str, constraints: str, args: Sequence[Handle], types: Sequence[dtype], tys: Sequence[dtype], *, pure: bool, pack: int
    ) -> list[Handle]:
        first = next((line.strip() for line in asm.splitlines() if line.strip()), "")
        raise NotImplementedError(
            f"inline assembly cannot be interpreted ({first!r}): run the kernel compiled, or write it with tl operations"
        )

    def print(self, prefix: str, args: Sequence[Handle], types: Sequence[dtype], *, hex: bool, is_signed: Sequence[bool]) -> None:
        if self.batch:
            raise Divergence
        place = f"pid ({', '.join(map(str, self.programs[0]))})"
        if not args:
            print(f"{place}{prefix}")
        for number, (a, ty, signed) in enumerate(zip(args, types, is_signed, strict=True)):
            operand = f"(operand {number}) " if len(args) > 1 else ""
            values = python_values(a, ty)
            values = values.view(f"i{values.dtype.itemsize}") if signed and values.dtype.kind == "u" else values
            for index in np.ndindex(ty.shape):
                where = f" idx ({', '.join(map(str, index))})" if ty.shape else " idx ()"
                print(f"{place}{where}{prefix}{operand}{_format(values[index], ty.scalar, hex)}")

    def assert_(self, condition: np.ndarray, mask: np.ndarray | None, message: str, ty: dtype) -> None:
        failed = ~np.asarray(condition) if mask is None else ~np.asarray(condition) & mask
        if failed.any():
            if self.batch:
                raise Divergence
            at = f" at {[int(i) for i in np.argwhere(failed)[0]]}" if ty.shape else ""
            raise DeviceAssertion(f"assertion failed{at}{': ' + message if message else ''}")

    def assume(self, condition: np.ndarray) -> None:
        if not np.all(condition):
            raise DeviceAssertion("tl.assume: the condition does not hold, so compiled code may do anything")

    def barrier(self) -> None:
        """Programs run alone and block by block: nothing to wait for."""

    def hint(self, a: Handle, name: str, values: tuple[int, ...]) -> None:
        """Hints do not change what a program computes."""

    def special(self, name: str, ty: dtype | None) -> Any:
        if ty is None:
            return None
        return numpy_dtype(ty).type(time.perf_counter_ns() if name in ("globaltimer", "memrealtime") else 0)


def _format(value: np.generic, ty: dtype, hexadecimal: bool) -> str:
    if hexadecimal or ty.is_ptr():
        bits = np.asarray(value).view(f"u{value.dtype.itemsize}")
        return f"0x{int(bits):0{bits.dtype.itemsize * 2}x}"
    if ty.is_floating():
        return f"{float(value):f}"
    return str(int(value))
