"""Layouts of the results and sources of shape operations, so that these move no data.

A packed coordinate is the row-major index, so a reshape leaves the columns alone; the others move bit fields. The functions up to
`concatenate` work on distributed and on shared layouts. `register_sources` says which registers of a source make up a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from . import f2
from .core import LinearLayout, dim_shifts, log2_exact


def _remap(layout: LinearLayout, move, out_sizes: Sequence[int]) -> LinearLayout:
    """Rebuild the layout with each image's coordinates sent through `move`."""
    shifts = dim_shifts(out_sizes)
    columns = {}
    for name, cols in zip(layout.names, layout.columns, strict=True):
        columns[name] = tuple(sum(c << s for c, s in zip(move(layout.unpack(col)), shifts, strict=True)) for col in cols)
    return LinearLayout.from_columns(columns, out_sizes)


def drop_register_copies(layout: LinearLayout) -> LinearLayout:
    """Return the layout without the register bits that only name copies of elements of the same thread."""
    echelon = f2.Echelon()
    kept = tuple(c for c in layout.column("register") if echelon.insert(c))
    return layout.with_columns(register=kept)


@lru_cache(maxsize=4096)
def reshape(layout: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    """Return the layout of the tensor viewed with another shape of the same number of elements (row-major order of elements is kept)."""
    if prod(shape) != prod(layout.out_sizes):
        raise ValueError(f"cannot reshape {layout.out_sizes} to {shape}")
    return LinearLayout.from_columns(dict(zip(layout.names, layout.columns, strict=True)), shape)


@lru_cache(maxsize=4096)
def trans(layout: LinearLayout, order: tuple[int, ...]) -> LinearLayout:
    """Return the layout of the transposed tensor: result dimension i is source dimension `order[i]`."""
    if sorted(order) != list(range(layout.rank)):
        raise ValueError(f"{order} is not a permutation of the dimensions of {layout.out_sizes}")
    return _remap(layout, lambda c: [c[d] for d in order], tuple(layout.out_sizes[d] for d in order))


def inverse_permutation(order: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes `order`."""
    return tuple(order.index(i) for i in range(len(order)))


@lru_cache(maxsize=4096)
def expand_dims(layout: LinearLayout, axis: int) -> LinearLayout:
    """Return the layout of the tensor with a dimension of size 1 put in at `axis`."""
    sizes = layout.out_sizes
    return LinearLayout.from_columns(dict(zip(layout.names, layout.columns, strict=True)), (*sizes[:axis], 1, *sizes[axis:]))


@lru_cache(maxsize=4096)
def slice_dim(layout: LinearLayout, axis: int, keep_copies: bool = False) -> LinearLayout:
    """Return the layout of the tensor reduced over `axis`, each thread holding the results of its own elements.

    Register copies are dropped, unless `keep_copies`; lanes and warps that differed along `axis` only hold copies.
    """
    sizes = layout.out_sizes[:axis] + layout.out_sizes[axis + 1 :]
    out = _remap(layout, lambda c: c[:axis] + c[axis + 1 :], sizes)
    return out if keep_copies else drop_register_copies(out)


@lru_cache(maxsize=4096)
def expand_source(layout: LinearLayout, axis: int) -> LinearLayout:
    """Return the layout that a source of `expand_dims` must have for its result to have `layout`; register copies are kept."""
    if layout.out_sizes[axis] != 1:
        raise ValueError(f"dimension {axis} of {layout.out_sizes} is not of size 1")
    return slice_dim(layout, axis, True)


@lru_cache(maxsize=4096)
def broadcast_source(layout: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    """Return the layout that a source of `shape` must have to be broadcast to `layout` inside each thread (register copies dropped)."""
    keep = [s == t for s, t in zip(shape, layout.out_sizes, strict=True)]
    if any(s != 1 and not k for s, k in zip(shape, keep, strict=True)):
        raise ValueError(f"{shape} does not broadcast to {layout.out_sizes}")
    return drop_register_copies(_remap(layout, lambda c: [x if k else 0 for x, k in zip(c, keep, strict=True)], shape))


@lru_cache(maxsize=4096)
def broadcast_result(layout: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    """Return a layout for the broadcast result that the threads can make by themselves: new elements are further registers."""
    out = _remap(layout, lambda c: c, shape)
    registers = list(out.column("register"))
    for dim in reversed(range(len(shape))):
        if layout.out_sizes[dim] == 1 and shape[dim] != 1:
            registers += [(1 << i) << out.shifts[dim] for i in range(log2_exact(shape[dim]))]
    return out.with_columns(register=registers)


@lru_cache(maxsize=4096)
def join(layout: LinearLayout) -> LinearLayout:
    """Return the layout of two joined tensors: a new last dimension of size 2 in the lowest register bit."""
    out = LinearLayout.from_columns(
        {name: tuple(c << 1 for c in cols) for name, cols in zip(layout.names, layout.columns, strict=True)}, (*layout.out_sizes, 2)
    )
    return out.with_columns(register=(1, *out.column("register")))


def split_register(layout: LinearLayout) -> int | None:
    """Return the register bit that alone selects along the last dimension (of size 2), or None if other bits move along it too."""
    movers = [(name, i) for name, cols in zip(layout.names, layout.columns, strict=True) for i, c in enumerate(cols) if c & 1]
    if len(movers) == 1 and movers[0][0] == "register" and layout.column("register")[movers[0][1]] == 1:
        return movers[0][1]
    return None


@lru_cache(maxsize=4096)
def split(layout: LinearLayout) -> LinearLayout | None:
    """Return the layout of the halves of a tensor split along its last dimension, or None if the halves lie in different threads."""
    bit = split_register(layout)
    if bit is None or layout.out_sizes[-1] != 2:
        return None
    columns = {name: tuple(c >> 1 for c in cols) for name, cols in zip(layout.names, layout.columns, strict=True)}
    columns["register"] = columns["register"][:bit] + columns["register"][bit + 1 :]
    return LinearLayout.from_columns(columns, layout.out_sizes[:-1])


@lru_cache(maxsize=4096)
def concatenate(layout: LinearLayout, dim: int) -> LinearLayout:
    """Return the layout of two tensors laid one after the other along `dim`, in the highest register bit."""
    size = layout.out_sizes[dim]
    sizes = (*layout.out_sizes[:dim], 2 * size, *layout.out_sizes[dim + 1 :])
    out = _remap(layout, lambda c: c, sizes)
    return out.with_columns(register=(*out.column("register"), size << out.shifts[dim]))


@lru_cache(maxsize=8192)
def conversion_columns(src: LinearLayout, dst: LinearLayout, keep: tuple[str, ...]) -> f2.Matrix | None:
    """Return the flat source index of each destination input bit such that inputs in `keep` do not change, or None if there is none."""
    if src.out_sizes != dst.out_sizes:
        raise ValueError(f"conversion between shapes {src.out_sizes} and {dst.out_sizes}")
    marks, shift = {}, src.out_bits
    for name in keep:
        marks[name] = shift
        shift += max(src.in_bits(name), dst.in_bits(name))

    def augmented(layout: LinearLayout) -> list[int]:
        out = []
        for name, cols in zip(layout.names, layout.columns, strict=True):
            mark = marks.get(name)
            out += cols if mark is None else [c | (1 << (mark + i)) for i, c in enumerate(cols)]
        return out

    return f2.solve(augmented(src), augmented(dst))


@lru_cache(maxsize=8192)
def register_sources(src: LinearLayout, dst: LinearLayout) -> tuple[int, ...] | None:
    """Return for each register of `dst` the register of `src` in the same thread that holds its element, or None if one lies elsewhere."""
    columns = conversion_columns(src, dst, ("lane", "warp", "block"))
    if columns is None:
        return None
    mask, registers = src.in_size("register") - 1, dst.in_bits("register")
    if any(c & mask for c in columns[registers:]):
        return None  # which register it is depends on the thread
    return tuple(f2.apply(columns, r) & mask for r in range(1 << registers))
