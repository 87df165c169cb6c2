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
    """`pieces` of shape `shape`, in `slots` buffers of `bytes` in all.

    `rows`, `columns`: warp w of n stores the blocks of that many rows whose number is w modulo n by itself, or, if there are only m < n of
    them, the part w / m of block w modulo m, of that many columns. 0: all warps together.
    """

    pieces: int
    shape: tuple[int, ...]
    slots: int
    bytes: int
    rows: int
    columns: int


def stagings(value: ir.Type, bits: int) -> tuple[Staging, ...]:
    """Return the ways to stage a tensor of type `value`, of elements of `bits` bits in memory: whole, then in ever smaller buffers."""
    return _stagings(layout_of(value), bits)


@lru_cache(maxsize=1024)
def _stagings(layout: LinearLayout, bits: int) -> tuple[Staging, ...]:
    shape = layout.out_sizes
    size = prod(shape) * bits // 8
    rows, columns = _part_of_warps(layout)
    out = [Staging(1, shape, 1, size, rows, columns)]
    pieces = 2
    halved = halves(layout) if len(shape) == 2 else None
    while halved is not None and halved.out_sizes[1] * bits >= 8 * _ROW_BYTES and tma_layout(halved.out_sizes, bits, True) is not None:
        if pieces > _SLOTS:
            out.append(Staging(pieces, halved.out_sizes, _SLOTS, size * _SLOTS // pieces, rows, min(columns, halved.out_sizes[1])))
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


def _part_of_warps(layout: LinearLayout) -> tuple[int, int]:
    """Return the rows and columns of the blocks that are dealt to the warps in turn, or (0, 0) if they are not; see `Staging`."""
    warps = layout.column("warp")
    if layout.rank != 2 or not warps:
        return 0, 0
    rows, cols = layout.out_sizes
    first, other = layout.unpack(warps[0])
    if not _MIN_ROWS <= first <= MAX_BOX or other or first & first - 1:
        return 0, 0
    deep = min(len(warps), (rows // first).bit_length() - 1)
    wide = cols >> len(warps) - deep
    expected = [(first << i, 0) for i in range(deep)] + [(0, wide << i) for i in range(len(warps) - deep)]
    if not wide or [layout.unpack(column) for column in warps] != expected:
        return 0, 0
    mask = layout.pack(((first << deep) - first, cols - wide))
    rest = (*layout.column("register"), *layout.column("lane"), *layout.column("block"))
    return (0, 0) if any(column & mask for column in rest) else (first, wide)
