"""Distributed layouts built from a tile: the blocked layout and the steps shared with the matrix fragments.

A distributed layout has the inputs "register", "lane", "warp" and "block", in that order, and its outputs are the tensor's dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from .core import LinearLayout, dim_shifts, log2_exact

INPUTS = ("register", "lane", "warp", "block")


class TileBuilder:
    """Grows a distributed layout bit by bit over a shape, keeping count of the extent covered in each dimension."""

    def __init__(self, shape: Sequence[int]):
        self.shape = tuple(shape)
        self.shifts = dim_shifts(self.shape)
        self.extent = [1] * len(self.shape)
        self.columns: dict[str, list[int]] = {name: [] for name in INPUTS}

    def bit(self, name: str, dim: int, stride: int) -> None:
        """Append one input bit that steps by `stride` elements in `dim`; a step beyond the shape becomes a broadcast bit."""
        inside = stride < self.shape[dim]
        self.columns[name].append(stride << self.shifts[dim] if inside else 0)
        self.extent[dim] = max(self.extent[dim], 2 * stride)

    def broadcast(self, name: str, size: int) -> None:
        """Append input bits that change nothing: `size` copies."""
        self.columns[name].extend([0] * log2_exact(size))

    def repeat(self, name: str, dim: int, count: int) -> None:
        """Append bits that put `count` copies of the tile so far side by side along `dim`."""
        for _ in range(log2_exact(count)):
            self.bit(name, dim, self.extent[dim])

    def fill(self, dim: int, upto: int | None = None) -> None:
        """Append register bits along `dim` until the extent reaches `upto` (default: the shape)."""
        limit = self.shape[dim] if upto is None else min(upto, self.shape[dim])
        while self.extent[dim] < limit:
            self.bit("register", dim, self.extent[dim])

    def build(self) -> LinearLayout:
        """Return the layout."""
        return LinearLayout.from_columns(self.columns, self.shape)


@lru_cache(maxsize=4096)
def blocked(
    shape: tuple[int, ...],
    size_per_thread: tuple[int, ...],
    threads_per_warp: tuple[int, ...],
    warps: tuple[int, ...],
    order: tuple[int, ...],
    ctas: tuple[int, ...] | None = None,
) -> LinearLayout:
    """Return the blocked layout: a thread owns a block, lanes tile a warp's block, warps tile the CTA's.

    `order` lists the dimensions from the fastest-varying one. Where the CTA's block is smaller than the (per-CTA) shape, registers repeat
    it; where it is larger, threads beyond the shape hold copies. `ctas` splits the tensor over the CTAs of a cluster, each with a
    contiguous part.
    Raises ValueError if the tuples do not have one power of two for each dimension.
    """
    rank = len(shape)
    ctas = ctas or (1,) * rank
    for what in (size_per_thread, threads_per_warp, warps, ctas):
        if len(what) != rank:
            raise ValueError(f"{what} does not have one entry for each dimension of {shape}")
    if sorted(order) != list(range(rank)):
        raise ValueError(f"order {order} is not a permutation of the dimensions of {shape}")
    tile = TileBuilder(shape)
    for name, counts in (("register", size_per_thread), ("lane", threads_per_warp), ("warp", warps)):
        for dim in order:
            for _ in range(log2_exact(counts[dim])):
                tile.bit(name, dim, tile.extent[dim])
    per_cta = tuple(max(1, s // c) for s, c in zip(shape, ctas, strict=True))
    _wrap(tile, per_cta)
    for dim in order:
        tile.fill(dim, per_cta[dim])
    for dim in order:
        for i in range(log2_exact(ctas[dim])):
            tile.bit("block", dim, per_cta[dim] << i)
    return _without_empty_registers(tile)


def _wrap(tile: TileBuilder, per_cta: Sequence[int]) -> None:
    """Turn steps beyond one CTA's part of the tensor into broadcast bits."""
    for name, columns in tile.columns.items():
        for i, col in enumerate(columns):
            for dim, (shift, size) in enumerate(zip(tile.shifts, tile.shape, strict=True)):
                if (col >> shift) & (size - 1) >= per_cta[dim]:
                    tile.columns[name][i] = 0
    tile.extent = [min(e, s) for e, s in zip(tile.extent, per_cta, strict=True)]


def _without_empty_registers(tile: TileBuilder) -> LinearLayout:
    """Build the layout without register bits that only make copies: a thread keeps one copy of an element."""
    tile.columns["register"] = [c for c in tile.columns["register"] if c]
    return tile.build()


@lru_cache(maxsize=4096)
def default_blocked(shape: tuple[int, ...], num_warps: int, threads_per_warp: int = 32, num_ctas: int = 1, vector: int = 1) -> LinearLayout:
    """Return a row-major blocked layout: `vector` elements a thread along the last dimension, lanes and then warps from there outwards."""
    rank = len(shape)
    order = tuple(reversed(range(rank)))
    size_per_thread = tuple(min(vector, shape[d]) if d == rank - 1 else 1 for d in range(rank))
    return blocked(
        shape, size_per_thread, *spread(shape, size_per_thread, order, num_warps, threads_per_warp), order, _split_ctas(shape, num_ctas)
    )


def spread(
    shape: Sequence[int], size_per_thread: Sequence[int], order: Sequence[int], num_warps: int, threads_per_warp: int = 32
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Distribute lanes and warps over a shape: each dimension takes what it can hold in `order`, the last one takes the rest."""
    rank = len(shape)
    lanes, warps = [1] * rank, [1] * rank
    room = [max(1, s // p) for s, p in zip(shape, size_per_thread, strict=True)]
    for counts, total in ((lanes, threads_per_warp), (warps, num_warps)):
        for i, dim in enumerate(order):
            take = total if i == rank - 1 else min(total, room[dim])
            counts[dim] = take
            total //= take
            room[dim] = max(1, room[dim] // take)
    return tuple(lanes), tuple(warps)


def _split_ctas(shape: Sequence[int], num_ctas: int) -> tuple[int, ...]:
    """Split over the CTAs of a cluster along the first dimensions that hold them."""
    ctas = []
    for size in shape:
        take = min(size, num_ctas)
        ctas.append(take)
        num_ctas //= take
    if ctas:
        ctas[0] *= num_ctas
    return tuple(ctas)


def element_count(layout: LinearLayout) -> int:
    """Return the number of elements (registers) that a thread holds."""
    return layout.in_size("register")


def thread_count(layout: LinearLayout) -> int:
    """Return the number of threads of a CTA that the layout speaks of."""
    return layout.in_size("lane") * layout.in_size("warp")


def tensor_size(layout: LinearLayout) -> int:
    """Return the number of elements of the tensor."""
    return prod(layout.out_sizes)
