"""Layouts and types of the tilegpu dialect. Every function is a dictionary look-up after its first call with the same argument."""

import ctypes
import functools
from collections.abc import Mapping, Sequence

from mlir import ir

from tilewright.dialects import _library

DIMS = ("register", "lane", "warp", "block")

Bases = tuple[tuple[int, ...], ...]

_linear_attrs: dict[tuple, ir.Attribute] = {}
_linears: dict[ir.Attribute, tuple[int, dict[str, Bases]] | None] = {}
_shared_attrs: dict[tuple, ir.Attribute] = {}
_shareds: dict[ir.Attribute, tuple[dict[str, Bases], tuple[int, int] | None] | None] = {}
_buffer_types: dict[tuple, ir.Type] = {}
_buffers: dict[ir.Type, tuple[tuple[int, ...], ir.Type, ir.Attribute, int] | None] = {}


def _freeze(vectors: Sequence[Sequence[int]]) -> Bases:
    return tuple(map(tuple, vectors))


def _rank_of(bases: Sequence[Bases], rank: int | None) -> int:
    """The length that all vectors share. Raises ValueError where they differ, or where there is none and `rank` is not given."""
    sizes = {len(vector) for vectors in bases for vector in vectors} | ({rank} if rank is not None else set())
    if len(sizes) != 1:
        raise ValueError(f"the vectors of a layout must have one length, got {sorted(sizes) or 'no vector'}")
    return sizes.pop()


def _ints(bases: Sequence[Bases]) -> ctypes.Array:
    flat = [value for vectors in bases for vector in vectors for value in vector]
    return (ctypes.c_int32 * len(flat))(*flat)


def _vectors(data, count: int, rank: int) -> Bases:
    return tuple(tuple(data[i * rank : (i + 1) * rank]) for i in range(count))


def linear_attr(bases: Mapping[str, Sequence[Sequence[int]]], rank: int | None = None) -> ir.Attribute:
    """`#tilegpu.linear` of the vectors per "register", "lane", "warp" and "block" bit; a missing name has no bits.

    `rank` is needed only where there is no vector at all. Raises ValueError for an unknown name or vectors of different lengths.
    """
    parts = tuple(_freeze(bases.get(dim, ())) for dim in DIMS)
    attr = _linear_attrs.get((parts, rank))
    if attr is None:
        if unknown := set(bases) - set(DIMS):
            raise ValueError(f"unknown input dimension {sorted(unknown)} of a linear layout; the names are {', '.join(DIMS)}")
        size = _rank_of(parts, rank)
        counts = (ctypes.c_uint * 4)(*map(len, parts))
        pointer = _library.library().tilewrightLinearAttr(_library.context_address(), size, counts, _ints(parts))
        if not pointer:
            raise ValueError(_library.last_error())
        attr = _linear_attrs[parts, rank] = _library.attribute_at(pointer)
    return attr


def _linear(attr: ir.Attribute) -> tuple[int, dict[str, Bases]] | None:
    try:
        return _linears[attr]
    except KeyError:
        pass
    counts, data = (ctypes.c_uint * 4)(), (ctypes.POINTER(ctypes.c_int32) * 4)()
    rank = _library.library().tilewrightLinearInfo(_library.attribute_address(attr), counts, data)
    result = None
    if rank >= 0:
        result = (rank, {dim: _vectors(data[i], counts[i], rank) for i, dim in enumerate(DIMS)})
    _linears[attr] = result
    return result


def is_linear(attr: ir.Attribute) -> bool:
    """True for `#tilegpu.linear`."""
    return _linear(attr) is not None


def _of_linear(attr: ir.Attribute) -> tuple[int, dict[str, Bases]]:
    info = _linear(attr)
    if info is None:
        raise TypeError(f"{attr} is not a linear layout")
    return info


def linear_bases(attr: ir.Attribute) -> dict[str, Bases]:
    """The vectors of a linear layout by input dimension; do not change the dictionary. Raises TypeError for any other attribute."""
    return _of_linear(attr)[1]


def linear_rank(attr: ir.Attribute) -> int:
    """The number of tensor dimensions of a linear layout. Raises TypeError for any other attribute."""
    return _of_linear(attr)[0]


def shared_attr(offset: Sequence[Sequence[int]], pad: Sequence[int] | None = None, rank: int | None = None) -> ir.Attribute:
    """`#tilegpu.shared` of the vectors per bit of the offset in elements; `pad` is (interval, amount) in elements.

    Raises ValueError for vectors of different lengths or a bad pad.
    """
    vectors = _freeze(offset)
    interval, amount = pad or (0, 0)
    key = (vectors, interval, amount, rank)
    attr = _shared_attrs.get(key)
    if attr is None:
        size = _rank_of((vectors,), rank)
        pointer = _library.library().tilewrightSharedAttr(
            _library.context_address(), size, len(vectors), _ints((vectors,)), interval, amount
        )
        if not pointer:
            raise ValueError(_library.last_error())
        attr = _shared_attrs[key] = _library.attribute_at(pointer)
    return attr


def _shared(attr: ir.Attribute) -> tuple[dict[str, Bases], tuple[int, int] | None] | None:
    try:
        return _shareds[attr]
    except KeyError:
        pass
    count, data, pad = ctypes.c_uint(), ctypes.POINTER(ctypes.c_int32)(), (ctypes.c_int32 * 2)()
    rank = _library.library().tilewrightSharedInfo(_library.attribute_address(attr), ctypes.byref(count), ctypes.byref(data), pad)
    result = None
    if rank >= 0:
        result = ({"offset": _vectors(data, count.value, rank)}, (pad[0], pad[1]) if pad[1] else None)
    _shareds[attr] = result
    return result


def is_shared(attr: ir.Attribute) -> bool:
    """True for `#tilegpu.shared`."""
    return _shared(attr) is not None


def shared_bases(attr: ir.Attribute) -> dict[str, Bases]:
    """{"offset": vectors} of a shared layout; do not change the dictionary. Raises TypeError for any other attribute."""
    info = _shared(attr)
    if info is None:
        raise TypeError(f"{attr} is not a shared layout")
    return info[0]


def shared_pad(attr: ir.Attribute) -> tuple[int, int] | None:
    """(interval, amount) in elements of a padded shared layout, else None. Raises TypeError for any other attribute."""
    info = _shared(attr)
    if info is None:
        raise TypeError(f"{attr} is not a shared layout")
    return info[1]


def buffer_type(shape: Sequence[int], elem: ir.Type, layout: ir.Attribute, slots: int = 0) -> ir.Type:
    """`!tilegpu.buffer<shape x elem, layout, slots>`; 0 slots: one tensor, not a ring. Raises ValueError where the layout does not fit."""
    key = (tuple(shape), elem, layout, slots)
    result = _buffer_types.get(key)
    if result is None:
        dims = (ctypes.c_int64 * len(shape))(*shape)
        pointer = _library.library().tilewrightBufferType(
            dims, len(shape), _library.type_address(elem), _library.attribute_address(layout), slots
        )
        if not pointer:
            raise ValueError(_library.last_error())
        result = _buffer_types[key] = _library.type_at(pointer)
    return result


def _buffer(type: ir.Type) -> tuple[tuple[int, ...], ir.Type, ir.Attribute, int] | None:
    try:
        return _buffers[type]
    except KeyError:
        pass
    shape, elem = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_void_p()
    layout, slots = ctypes.c_void_p(), ctypes.c_int64()
    rank = _library.library().tilewrightBufferInfo(
        _library.type_address(type), ctypes.byref(shape), ctypes.byref(elem), ctypes.byref(layout), ctypes.byref(slots)
    )
    result = None
    if rank >= 0:
        result = (tuple(shape[:rank]), _library.type_at(elem.value), _library.attribute_at(layout.value), slots.value)
    _buffers[type] = result
    return result


def is_buffer(type: ir.Type) -> bool:
    """True for `!tilegpu.buffer`."""
    return _buffer(type) is not None


def buffer_info(type: ir.Type) -> tuple[tuple[int, ...], ir.Type, ir.Attribute, int]:
    """(shape, element type, shared layout, slots or 0) of a buffer. Raises TypeError for any other type."""
    info = _buffer(type)
    if info is None:
        raise TypeError(f"{type} is not a buffer")
    return info


@functools.cache
def token_type() -> ir.Type:
    """`!tilegpu.token`."""
    return _library.type_at(_library.library().tilewrightTokenType(_library.context_address()))
