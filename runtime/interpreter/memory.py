"""Memory as an interpreted kernel sees it: integer addresses into the arrays that were passed to the launch.

An `Allocation` is a range of addresses with its bytes on the host; several arguments may point into one. A `Base` is one pointer
argument: it travels with every pointer computed from it, so that an access outside its allocation is reported under the argument's
name. Pointers without a base (made from an integer, or loaded from memory) are looked up among the known allocations, then in the
memory of this process. All accesses are vectorized over the block; masked-off lanes are never looked at.
"""

from __future__ import annotations

import ctypes
import sys
from bisect import bisect_right
from collections.abc import Callable

import numpy as np

RAW = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}


class MemoryFault(Exception):
    """An access that a GPU would not survive, or that would corrupt other data; the message names argument and index."""


class Allocation:
    """`data` (uint8) holds the bytes of addresses `start` to `end`; `writable` is False for constant arrays."""

    __slots__ = ("start", "end", "data", "writable", "written", "_views")

    def __init__(self, start: int, data: np.ndarray, writable: bool = True):
        self.start = start
        self.end = start + data.nbytes
        self.data = data
        self.writable = writable
        self.written = False
        self._views: dict[int, tuple[int, np.ndarray]] = {}

    def view(self, itemsize: int) -> tuple[int, np.ndarray]:
        """(address of element 0, elements as raw unsigned integers) for accesses of `itemsize` bytes at aligned addresses."""
        view = self._views.get(itemsize)
        if view is None:
            skip = -self.start % itemsize
            count = max(self.data.nbytes - skip, 0) // itemsize
            view = self.start + skip, self.data[skip : skip + count * itemsize].view(RAW[itemsize])
            self._views[itemsize] = view
        return view


class Base:
    """Pointer argument `name` with its `address`; `itemsize` is the size of its element type in bytes, `shape` and `strides` (bytes) are
    the array's."""

    __slots__ = ("name", "address", "itemsize", "allocation", "shape", "strides")

    def __init__(
        self, name: str, address: int, itemsize: int, allocation: Allocation, shape: tuple[int, ...] = (), strides: tuple[int, ...] = ()
    ):
        self.name = name
        self.address = address
        self.itemsize = itemsize
        self.allocation = allocation
        self.shape = shape
        self.strides = strides


class Memory:
    """The address space of one launch."""

    def __init__(self) -> None:
        self._allocations: list[Allocation] = []
        self._starts: list[int] = []
        self._bases: list[Base] = []
        self._undo: list[tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None

    def begin(self) -> None:
        """From now on remember what is overwritten, for `rollback`."""
        self._undo = []

    def commit(self) -> None:
        """Keep what was written since `begin`."""
        self._undo = None

    def rollback(self) -> None:
        """Undo what was written since `begin`."""
        for view, index, old in reversed(self._undo or []):
            view[index] = old
        self._undo = None

    def _remember(self, view: np.ndarray, index: np.ndarray) -> None:
        if self._undo is not None:
            self._undo.append((view, index, view[index]))

    @property
    def allocations(self) -> list[Allocation]:
        return self._allocations

    def add(self, start: int, size: int, make: Callable[[], tuple[np.ndarray, bool]]) -> Allocation:
        """The allocation that covers `start` to `start + size`; `make` gives (bytes, writable) if it is not known yet."""
        known = self._find(start)
        if known is not None and start + size <= known.end:
            return known
        data, writable = make()
        allocation = Allocation(start, data, writable)
        at = bisect_right(self._starts, start)
        self._allocations.insert(at, allocation)
        self._starts.insert(at, start)
        return allocation

    def add_base(
        self, name: str, address: int, itemsize: int, allocation: Allocation, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> Base:
        base = Base(name, address, itemsize, allocation, shape, strides)
        self._bases.append(base)
        return base

    def enter(self, programs: list[tuple[int, int, int]]) -> None:
        """What follows is done by these programs."""

    def synchronize(self, address: np.ndarray, mask: np.ndarray | None, sem: str) -> None:
        """The running program has done an atomic of semantics `sem` at these addresses."""

    def finish(self) -> None:
        """All programs have run."""

    def load(
        self,
        address: np.ndarray,
        itemsize: int,
        base: Base | None,
        mask: np.ndarray | None = None,
        fill: np.ndarray | None = None,
        access: str = "load",
    ) -> np.ndarray:
        """Raw unsigned integers of `itemsize` bytes at `address`; masked-off lanes take `fill`, or 0. Operands may broadcast.

        `access` says what it is: "load" or "atomic load"."""
        if mask is not None and not mask.all():
            if fill is not None and not mask.shape == address.shape == fill.shape:
                address, mask, fill = np.broadcast_arrays(address, mask, fill)
            elif mask.shape != address.shape:
                address, mask = np.broadcast_arrays(address, mask)
            out = np.zeros(address.shape, RAW[itemsize]) if fill is None else np.array(fill)
            active = address[mask]
            if active.size:
                out[mask] = self.load(active, itemsize, base, access=access)
            return out
        spans = self._spans(address, itemsize, base, access)
        if len(spans) == 1 and spans[0][2] is None:
            _, view, _, index = spans[0]
            return view.take(index)
        out = np.zeros(address.shape, RAW[itemsize])
        for _, view, where, index in spans:
            out[where] = view[index]
        return out

    def store(
        self,
        address: np.ndarray,
        raw: np.ndarray,
        itemsize: int,
        base: Base | None,
        mask: np.ndarray | None = None,
        access: str = "store",
    ) -> None:
        """Write `raw` (unsigned integers of `itemsize` bytes) to `address`; of lanes with one address the last wins; they broadcast.

        `access` says what it is: "store" or "atomic store"."""
        if raw.shape != address.shape:
            address, raw = np.broadcast_arrays(address, raw)
        if mask is not None and not mask.all():
            if mask.shape != address.shape:
                address, raw, mask = np.broadcast_arrays(address, raw, mask)
            address, raw = address[mask], raw[mask]
            if not address.size:
                return
        for _, view, where, index in self._spans(address, itemsize, base, access):
            self._remember(view, index)
            view[index] = raw if where is None else raw[where]

    def cells(self, address: np.ndarray, itemsize: int, base: Base | None) -> list[tuple[np.ndarray, np.ndarray | None, np.ndarray]]:
        """For a read-modify-write of a 1-D block: (elements, lanes or None for all, index per lane) for each array touched."""
        spans = self._spans(address, itemsize, base, "atomic")
        for _, view, _, index in spans:
            self._remember(view, index)
        return [(view, where, index) for _, view, where, index in spans]

    def _spans(self, address: np.ndarray, itemsize: int, base: Base | None, access: str) -> list:
        """(allocation, its elements, lanes or None for all, index per lane); faults if a lane is out of bounds or misaligned."""
        if not address.size:
            return []
        low, high = int(address.min()), int(address.max())
        if itemsize > 1 and int(np.bitwise_or.reduce(address, axis=None)) & (itemsize - 1):
            raise MemoryFault(self._misaligned(address, itemsize, base, access))
        allocation = base.allocation if base is not None else self._find(low)
        if allocation is not None and low >= allocation.start and high + itemsize <= allocation.end:
            return [self._span(allocation, address, None, itemsize, access, base)]
        if base is not None:
            raise MemoryFault(self._out_of_bounds(address, itemsize, base, access))
        return self._scattered_spans(address, itemsize, access)

    def _span(self, allocation, address, where, itemsize, access, base) -> tuple:
        if "load" not in access:
            if not allocation.writable:
                raise MemoryFault(f"{access} to {self._name(base, allocation)}, which is read-only")
            allocation.written = True
        origin, view = allocation.view(itemsize)
        index = address - origin
        return allocation, view, where, index >> (itemsize.bit_length() - 1) if itemsize > 1 else index

    def _scattered_spans(self, address: np.ndarray, itemsize: int, access: str) -> list:
        """Lanes without a base that do not all lie in one allocation: group them by allocation."""
        owner = np.searchsorted(np.array(self._starts, np.int64), address, side="right") - 1
        spans = []
        for number in np.unique(owner):
            where = owner == number
            lanes = address[where]
            low, high = int(lanes.min()), int(lanes.max()) + itemsize
            allocation = self._allocations[number] if number >= 0 else None
            if allocation is None or high > allocation.end:
                allocation = self._foreign(low, high, access)
            spans.append(self._span(allocation, lanes, where, itemsize, access, None))
        return spans

    def _foreign(self, low: int, high: int, access: str) -> Allocation:
        """Memory of this process that no argument covers, such as an array that the kernel knows only by an address in a table."""
        if not _is_mapped(low, high, writing="load" not in access):
            raise MemoryFault(
                f"{access} at address {low:#x}, which lies in no array that was passed to the kernel; "
                "pass the array that it points to as an argument as well"
            )
        return Allocation(low, np.frombuffer((ctypes.c_uint8 * (high - low)).from_address(low), np.uint8))

    def _find(self, address: int) -> Allocation | None:
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address < self._allocations[at].end:
            return self._allocations[at]
        return None

    def _name(self, base: Base | None, allocation: Allocation) -> str:
        names = [b.name for b in self._bases if b is base or (base is None and b.allocation is allocation)]
        return f"argument '{names[0]}'" if names else "memory"

    def _out_of_bounds(self, address: np.ndarray, itemsize: int, base: Base, access: str) -> str:
        allocation = base.allocation
        bad = (address < allocation.start) | (address + itemsize > allocation.end)
        first = int(address[bad].flat[0]) if address.ndim else int(address)
        first_index = (first - base.address) // base.itemsize
        low = -((base.address - allocation.start) // base.itemsize)
        high = (allocation.end - base.address) // base.itemsize
        lanes = f" (the first of {int(bad.sum())} such lanes, block position {_position(bad)})" if address.ndim else ""
        valid = f"valid: {low} to {high - 1}" if high > low else "the array is empty"
        return f"out-of-bounds {access}: argument '{base.name}' at index {first_index}{lanes}; {valid}"

    def _misaligned(self, address: np.ndarray, itemsize: int, base: Base | None, access: str) -> str:
        bad = (address & (itemsize - 1)) != 0
        first = int(address[bad].flat[0]) if address.ndim else int(address)
        where = f"argument '{base.name}' at byte offset {first - base.address}" if base is not None else f"address {first:#x}"
        return f"misaligned {access}: {where} is not a multiple of the element size, {itemsize} bytes"


def _position(bad: np.ndarray) -> str:
    return str([int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape)])


def _is_mapped(low: int, high: int, writing: bool) -> bool:
    """Whether this process may access addresses `low` to `high`; asked only on Linux, elsewhere no foreign address is accepted."""
    if not sys.platform.startswith("linux"):
        return False
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, rights = line.split(maxsplit=2)[:2]
            start, end = (int(part, 16) for part in span.split("-"))
            if start <= low < end:
                if "r" not in rights or (writing and "w" not in rights):
                    return False
                if high <= end:
                    return True
                low = end
    return False
