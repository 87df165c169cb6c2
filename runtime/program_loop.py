"""Launches of kernels that loop over their programs: how many CTAs run, and where the kernel finds the grid that was asked for."""

from __future__ import annotations

import struct
from collections.abc import Callable

from .frames import Packing

#: A function of the memory of a packed launch and its grid; see `program_loop`.
ProgramLoop = Callable[[bytearray, int, int, int], None]

#: What a loop over programs counts to: its programs are numbered by an i32, and each CTA knows the numbers of some further on.
_MOST_PROGRAMS = 2**31 - 1
_TURNS_AHEAD = 10
#: Grids that are remembered.
_MOST_GRIDS = 1024
_GRIDS = struct.Struct("<6I")
_ADDRESS = struct.Struct("<Q")


class _Grids(dict):
    """(x, y, z) -> the bytes of that grid and of the one that is launched for it, at most `limit` programs of `ctas` CTAs. If programs
    are `alike`, no more are launched than end no later: of 132, 128 take 16 of 2048 programs each, where 68 would take 16 and the others,
    with 15, wait for them. The multiprocessors that are left idle save power, by which products are bound, and what CTAs load together
    stays together."""

    def __init__(self, limit: int, ctas: int, alike: bool):
        super().__init__()
        self.limit, self.ctas, self.alike = limit, ctas, alike

    def __missing__(self, grid: tuple[int, int, int]) -> bytes:
        x, y, z = grid
        programs = x * y * z
        if programs + _TURNS_AHEAD * self.limit > _MOST_PROGRAMS:
            raise ValueError(f"a grid of {x} x {y} x {z} programs is too large for a loop over programs: launch it with persistent=False")
        together = min(programs, self.limit)
        if self.alike and programs:
            together = -(-programs // -(-programs // self.limit))
        if len(self) >= _MOST_GRIDS:
            self.clear()
        self[grid] = found = _GRIDS.pack(x, y, z, together * self.ctas, 1, 1)
        return found


def program_loop(layout: Packing, limit: int, ctas: int, alike: bool, counter: Callable[[int], int] | None) -> ProgramLoop:
    """A function of the memory of a packed launch and its grid (x, y, z) that makes it a launch of at most `limit` programs of `ctas` CTAs
    which loop over all of them: the grid goes where the kernel's arguments point. If the kernel takes programs from a queue, so does the
    address of the `counter` of the stream, 0 if it has none: without one, each CTA has the same share. It raises ValueError for more
    programs than the loop counts in 32 bits, and struct.error for a grid that is none."""
    start, end, stream_at, word_at = layout.grid, layout.grid + _GRIDS.size, layout.stream, layout.queue
    shares = _Grids(limit, ctas, alike)
    if counter is None:

        def write(memory: bytearray, x: int, y: int, z: int) -> None:
            memory[start:end] = shares[x, y, z]

        return write
    taken = _Grids(limit, ctas, alike=False)

    def write_with_counter(memory: bytearray, x: int, y: int, z: int) -> None:
        word = counter(_ADDRESS.unpack_from(memory, stream_at)[0])
        memory[start:end] = taken[x, y, z] if word else shares[x, y, z]
        _ADDRESS.pack_into(memory, word_at, word)

    return write_with_counter
