"""How a block is staged in shared memory on its way to a TMA store: whole or in pieces, by all warps together or by each warp.

- *Pieces*: the block is cut along its last dimension, and its pieces take turns in the slots of a smaller staging buffer, so that TMA
  reads one while the next is written. That leaves shared memory to the loops that load.
- *Each warp*: where a warp holds whole rows of boxes, it writes them, waits and stores by itself. Warps then need not be at the same
  place, and no barrier is executed: the threads of a warp are together anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from mlir import ir

from tilewright.compiler.encoding import layout_of
from tilewright.compiler.layouts import LinearLayout, shape_ops
from tilewright.compiler.layouts.descriptors import MAX_BOX, tma_layout

#: The widest swizzle: narrower pieces would be stored by smaller boxes.
_ROW_BYTES = 128
#: Rows of a box that are worth a TMA store of their own.
_MIN_ROWS = 16
#: Slots of a staging buffer for pieces.
_SLOTS = 2


@dataclass(frozen=True)
class Staging:
    """`pieces` of shape `shape`, in `slots` buffers of `bytes` in all. `rows`: warp w of n stores the blocks of that many rows whose number
    is w modulo n by itself; 0: all warps together."""

    pieces: int
    shape: tuple[int, ...]
    slots: int
    bytes: int
    rows: int


def stagings(value: ir.Type, bits: int) -> tuple[Staging, ...]:
    """Return the ways to stage a tensor of type `value`, of elements of `bits` bits in memory: whole, then in ever smaller buffers."""
    return _stagings(layout_of(value), bits)


@lru_cache(maxsize=1024)
def _stagings(layout: LinearLayout, bits: int) -> tuple[Staging, ...]:
    shape = layout.out_sizes
    size = prod(shape) * bits // 8
    rows = _rows_of_warps(layout)
    out = [Staging(1, shape, 1, size, rows)]
    pieces = 2
    halved = halves(layout) if len(shape) == 2 else None
    while halved is not None and halved.out_sizes[1] * bits >= 8 * _ROW_BYTES and tma_layout(halved.out_sizes, bits, True) is not None:
        if pieces > _SLOTS:
            out.append(Staging(pieces, halved.out_sizes, _SLOTS, size * _SLOTS // pieces, rows))
        pieces *= 2
        halved = halves(halved)
    return tuple(out)


@lru_cache(maxsize=1024)
def halves(layout: LinearLayout) -> LinearLayout | None:
    """Return the layout of the left and of the right half of a matrix, or None if they lie in different threads."""
    rows, cols = layout.out_sizes
    if cols < 2:
        return None
    return shape_ops.split(shape_ops.trans(shape_ops.reshape(layout, (rows, 2, cols // 2)), (0, 2, 1)))


def _rows_of_warps(layout: LinearLayout) -> int:
    """Return the rows of which blocks are dealt to the warps in turn, or 0 if they are not."""
    warps = layout.column("warp")
    if layout.rank != 2 or not warps:
        return 0
    first, other = layout.unpack(warps[0])
    if not _MIN_ROWS <= first <= MAX_BOX or other or first & first - 1:
        return 0
    if any(layout.unpack(column) != (first << i, 0) for i, column in enumerate(warps)):
        return 0
    mask = (first << len(warps)) - first << layout.shifts[0]
    rest = (*layout.column("register"), *layout.column("lane"), *layout.column("block"))
    return 0 if any(column & mask for column in rest) else first
