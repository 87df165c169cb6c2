"""Grids of launches as the driver takes them, and for kernels that loop over their programs, how many CTAs run."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from .frames import Packing

#: What a loop over programs counts to: its programs are numbered by an i32, and each CTA knows the numbers of some further on.
_MOST_PROGRAMS = 2**31 - 1
_TURNS_AHEAD = 10
#: Grids that are remembered for a kernel: most are launched again and again, and packing one takes longer than finding it.
_MOST_GRIDS = 1024
_GRIDS = struct.Struct("<6I16s")
_ADDRESS = struct.Struct("<Q")

#: A function of a packed frame and the grid that writes the address of a queue's counter.
Queue = Callable[[bytearray, tuple], None]


class Grids(dict):
    """Grid, a tuple of one to three integers -> what `Packing.format` packs for it: the grid, the one that is launched, and `block`, the
    block dimensions and bytes of shared memory. A miss raises KeyError or `struct.error` for what is no grid.

    With a `limit`, the kernel loops over its programs, and at most so many run, of `ctas` CTAs each; ValueError for more than the loop
    counts in 32 bits. If they are `alike`, no more are launched than end no later: of 132, 128 take 16 of 2048 programs each, where 68
    would take 16 and the others, with 15, wait for them. The multiprocessors that are left idle save power, by which products are bound,
    and what CTAs load together stays together.
    """

    def __init__(self, ctas: int, block: bytes, limit: int = 0, alike: bool = False):
        super().__init__()
        self.ctas, self.block, self.limit, self.alike = ctas, block, limit, alike

    def __missing__(self, grid: tuple[int, ...]) -> bytes:
        if not 1 <= len(grid) <= 3:
            raise KeyError(grid)
        x, y, z = (*grid, 1, 1)[:3]
        launched = self._looped(x, y, z) if self.limit else (x * self.ctas, y, z)
        if len(self) >= _MOST_GRIDS:
            self.clear()
        self[grid] = packed = _GRIDS.pack(x, y, z, *launched, self.block)
        return packed

    def _looped(self, x: int, y: int, z: int) -> tuple[int, int, int]:
        programs = x * y * z
        if programs + _TURNS_AHEAD * self.limit > _MOST_PROGRAMS:
            raise ValueError(f"a grid of {x} x {y} x {z} programs is too large for a loop over programs: launch it with persistent=False")
        together = min(programs, self.limit)
        if self.alike and programs > self.limit:
            together = -(-programs // -(-programs // self.limit))
        return together * self.ctas, 1, 1


def grids_and_queue(run: Any, layout: Packing) -> tuple[Grids, Queue | None]:
    """The grids of a kernel whose launcher (`GenericLauncher`) is `run`, and if it takes its programs from a queue, what is called after
    packing: a launch whose stream has no counter gives each CTA the same share instead."""
    counter = run.counter
    shares = Grids(run.num_ctas, run.block, run.limit, run.alike)
    if counter is None:
        return shares, None
    start, end, stream_at, word_at = layout.grid, layout.grid + _GRIDS.size, layout.stream, layout.queue

    def write(memory: bytearray, grid: tuple[int, ...]) -> None:
        word = counter(_ADDRESS.unpack_from(memory, stream_at)[0])
        if word:
            _ADDRESS.pack_into(memory, word_at, word)
        else:
            memory[start:end] = shares[grid]

    return Grids(run.num_ctas, run.block, run.limit), write
