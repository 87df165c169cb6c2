"""Layouts of shared-memory buffers: a linear map from element offsets to tensor coordinates, plus optional padding.

The input is "offset", counted in elements from the start of the buffer. Padding inserts `amount` unused elements after each `interval`
elements, so an element at linear offset `o` lies at `o + o // interval * amount`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from . import f2
from .core import LinearLayout, log2_exact

#: Widths in bytes of the swizzles that TMA and wgmma know; 0 means none.
SWIZZLES = (128, 64, 32)


@dataclass(frozen=True)
class SharedLayout:
    """Where the elements of a buffer lie. `padding` is (interval, amount) in elements or None."""

    linear: LinearLayout
    padding: tuple[int, int] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the buffer."""
        return self.linear.out_sizes

    @property
    def order(self) -> tuple[int, ...]:
        """Dimensions from the fastest-varying one, by the offset bit that first moves in each."""
        first = {}
        for bit, coords in enumerate(self.linear.bases["offset"]):
            for dim, coord in enumerate(coords):
                if coord:
                    first.setdefault(dim, bit)
        rank = self.linear.rank
        return tuple(sorted(range(rank), key=lambda d: (first.get(d, 64), -d)))

    def allocation_elements(self) -> int:
        """Return the number of elements of memory the buffer takes, padding included."""
        size = self.linear.in_size("offset")
        return self.padded(size - 1) + 1

    def padded(self, offset: int) -> int:
        """Return the memory position of a linear offset."""
        if self.padding is None:
            return offset
        interval, amount = self.padding
        return offset + offset // interval * amount

    def address_columns(self) -> f2.Matrix:
        """Return the linear offset of each packed coordinate bit: the inverse of the map. Raises ValueError if it has none."""
        return _address_columns(self.linear)


@lru_cache(maxsize=4096)
def _address_columns(linear: LinearLayout) -> f2.Matrix:
    columns = f2.solve(linear.column("offset"), f2.identity(linear.out_bits))
    if columns is None:
        raise ValueError(f"{linear!r} does not cover the buffer")
    return columns


def _row_major(shape: Sequence[int], order: Sequence[int]) -> list[tuple[int, int]]:
    """Return (dimension, stride) of each offset bit of a plain layout with `order` fastest first."""
    return [(dim, 1 << i) for dim in order for i in range(log2_exact(shape[dim]))]


def _from_steps(shape: Sequence[int], steps: Sequence[Sequence[tuple[int, int]]]) -> LinearLayout:
    """Build the layout whose offset bits move by the given lists of (dimension, stride)."""
    bases = []
    for step in steps:
        coords = [0] * len(shape)
        for dim, stride in step:
            coords[dim] ^= stride
        bases.append(tuple(coords))
    return LinearLayout({"offset": bases}, shape)


@lru_cache(maxsize=4096)
def identity(shape: tuple[int, ...], order: tuple[int, ...] | None = None) -> SharedLayout:
    """Return the plain layout; `order` lists dimensions from the fastest-varying one (default: row-major)."""
    order = order or tuple(reversed(range(len(shape))))
    return SharedLayout(_from_steps(shape, [[s] for s in _row_major(shape, order)]))


@lru_cache(maxsize=4096)
def padded(shape: tuple[int, ...], interval: int, amount: int, order: tuple[int, ...] | None = None) -> SharedLayout:
    """Return the plain layout with `amount` elements of padding after each `interval` elements (both powers of two)."""
    log2_exact(interval)
    log2_exact(amount)
    return SharedLayout(identity(shape, order).linear, (interval, amount))


@lru_cache(maxsize=4096)
def swizzled(shape: tuple[int, ...], vec: int, per_phase: int, max_phase: int, order: tuple[int, ...] | None = None) -> SharedLayout:
    """Return the XOR-swizzled layout: in row r, groups of `vec` elements change places by XOR with `(r // per_phase) % max_phase`.

    Rows run along `order[1]`, elements along `order[0]`; further dimensions are plain. A phase beyond the row's length is cut off.
    """
    rank = len(shape)
    order = order or tuple(reversed(range(rank)))
    for value in (vec, per_phase, max_phase):
        log2_exact(value)
    steps = []
    for dim, stride in _row_major(shape, order):
        step = [(dim, stride)]
        if rank > 1 and dim == order[1]:
            moved = (stride // per_phase) % max_phase * vec % shape[order[0]]
            if moved:
                step.append((order[0], moved))
        steps.append(step)
    return SharedLayout(_from_steps(shape, steps))


def fitting_swizzle(inner_bytes: int) -> int:
    """Return the widest swizzle in bytes that rows of `inner_bytes` bytes can take: 128, 64, 32, or 0 for less."""
    return next((s for s in SWIZZLES if s <= inner_bytes), 0)


@lru_cache(maxsize=4096)
def nvmma(shape: tuple[int, ...], element_bits: int, swizzle: int | None = None, order: tuple[int, ...] | None = None) -> SharedLayout:
    """Return the layout that TMA writes and wgmma reads: rows of `swizzle` bytes (128, 64, 32; 0 for 16-byte rows without swizzle).

    The buffer is a sequence of sub-tiles of [all rows] x [`swizzle` bytes of the inner dimension], as TMA boxes fill them; inside a
    sub-tile the 16-byte chunks of each row are XORed by bits 7..9 of the address. `order[0]` is the inner dimension: K for K-major
    operands, M or N for MN-major ones. `swizzle` defaults to the widest that fits. Raises ValueError if a row is shorter than the swizzle.
    """
    rank = len(shape)
    order = order or tuple(reversed(range(rank)))
    inner = order[0]
    element_bytes = element_bits // 8
    if swizzle is None:
        swizzle = fitting_swizzle(shape[inner] * element_bytes)
    span_bytes = swizzle or 16
    if swizzle not in (*SWIZZLES, 0):
        raise ValueError(f"swizzle of {swizzle} bytes; accepted: 128, 64, 32, 0")
    span = span_bytes // element_bytes
    if swizzle and shape[inner] < span:
        raise ValueError(f"a row of {shape[inner] * element_bytes} bytes is shorter than the swizzle of {swizzle} bytes")
    span = min(span, shape[inner])
    plain = [(inner, 1 << i) for i in range(log2_exact(span))]
    plain += _row_major(shape, order[1:])
    plain += [(inner, span << i) for i in range(log2_exact(shape[inner] // span))]
    chunk = max(1, 16 // element_bytes)
    phases = max(1, span_bytes // 16) if swizzle else 1
    steps = []
    for bit, (dim, stride) in enumerate(plain):
        step = [(dim, stride)]
        row_of_128 = ((1 << bit) * element_bytes) // 128
        moved = row_of_128 % phases * chunk if row_of_128 < 8 else 0
        if moved and moved < span and dim != inner:
            step.append((inner, moved))
        steps.append(step)
    return SharedLayout(_from_steps(shape, steps))


@lru_cache(maxsize=4096)
def column_blocks(shape: tuple[int, ...], span: int) -> SharedLayout:
    """Return the plain layout of blocks of `span` elements of the last dimension (a power of two), each with all the other dimensions."""
    inner = len(shape) - 1
    plain = [(inner, 1 << i) for i in range(log2_exact(span))]
    plain += _row_major(shape, tuple(reversed(range(inner))))
    plain += [(inner, span << i) for i in range(log2_exact(shape[inner] // span))]
    return SharedLayout(_from_steps(shape, [[s] for s in plain]))


@lru_cache(maxsize=4096)
def conflict_free(shape: tuple[int, ...], element_bits: int, order: tuple[int, ...] | None = None, vec_bytes: int = 16) -> SharedLayout:
    """Return the XOR swizzle with chunks of `vec_bytes` that spreads the rows of a matrix over all 32 banks."""
    rank = len(shape)
    order = order or tuple(reversed(range(rank)))
    if rank < 2:
        return identity(shape, order)
    row_bytes = max(1, shape[order[0]] * element_bits // 8)
    vec = max(1, vec_bytes * 8 // element_bits)
    if row_bytes <= vec_bytes:
        return identity(shape, order)
    per_phase = max(1, 128 // row_bytes)
    max_phase = max(1, min(128, row_bytes) // vec_bytes)
    return swizzled(shape, vec, per_phase, max_phase, order)
