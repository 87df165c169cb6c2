"""Tensor descriptors: an array in global memory, accessed by blocks with bounds checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..builder import EVICTION, LOAD_CACHE
from ..core import base_value, builtin, constexpr, leaf, shown, tensor
from ..core import tuple as language_tuple
from ..dtypes import (
    bfloat16,
    block_type,
    dtype,
    float16,
    float32,
    int32,
    int64,
    tensor_descriptor_type,
    uint32,
    uint64,
    validate_block_shape,
)
from .cast import cast, convert
from .memory import modifier
from .session import Semantic
from .values import expect_tensor, to_tensor

_ADD = (uint32, int32, uint64, float32, float16, bfloat16)
_EXTREMUM = (uint32, int32, uint64, int64, float16, bfloat16)
_BITS = (uint32, int32, uint64, int64)


class tensor_descriptor(base_value):
    """An array of `shape` (int32) and `strides` (int64, in elements), moved in blocks of `block_shape`. `handle` is the builder's."""

    def __init__(self, handle: Any, shape: list[tensor], strides: list[tensor], type: tensor_descriptor_type):
        self.handle = handle
        self.shape, self.strides = language_tuple(shape), language_tuple(strides)
        self.type = type

    @property
    def block_type(self) -> block_type:
        return self.type.block_type

    @property
    def block_shape(self) -> list[int]:
        return list(self.type.block_type.shape)

    @property
    def dtype(self) -> dtype:
        return self.type.element_ty

    def _leaves(self) -> list[leaf]:
        return [leaf(self.handle, self.type), *self.shape, *self.strides]

    def _with_leaves(self, leaves: Iterator[leaf]) -> tensor_descriptor:
        handle = next(leaves).handle
        shape = [next(leaves) for _ in self.shape]
        return tensor_descriptor(handle, shape, [next(leaves) for _ in self.strides], self.type)

    def __str__(self) -> str:
        return str(self.type)

    @builtin
    def load(self, offsets, cache_modifier="", eviction_policy="", _semantic=None):
        """The block at `offsets`; elements outside the array are the descriptor's padding."""
        return load_block(_semantic, self, offsets, cache_modifier, eviction_policy)

    @builtin
    def store(self, offsets, value, _semantic=None):
        """Write a block at `offsets`; elements outside the array are dropped."""
        value = _block_value(_semantic, self, value)
        _semantic.builder.descriptor_store(self.handle, value.handle, _offsets(_semantic, self, offsets), value.type)

    @builtin
    def atomic_add(self, offsets, value, _semantic=None):
        """Add a block to memory."""
        _reduce(_semantic, self, "add", offsets, value, _ADD)

    @builtin
    def atomic_min(self, offsets, value, _semantic=None):
        """Replace memory by the smaller of it and a block."""
        _reduce(_semantic, self, "min", offsets, value, _EXTREMUM)

    @builtin
    def atomic_max(self, offsets, value, _semantic=None):
        """Replace memory by the larger of it and a block."""
        _reduce(_semantic, self, "max", offsets, value, _EXTREMUM)

    @builtin
    def atomic_and(self, offsets, value, _semantic=None):
        """Memory &= a block."""
        _reduce(_semantic, self, "and", offsets, value, _BITS)

    @builtin
    def atomic_or(self, offsets, value, _semantic=None):
        """Memory |= a block."""
        _reduce(_semantic, self, "or", offsets, value, _BITS)

    @builtin
    def atomic_xor(self, offsets, value, _semantic=None):
        """Memory ^= a block."""
        _reduce(_semantic, self, "xor", offsets, value, _BITS)

    @builtin
    def gather(self, x_offsets, y_offset, _semantic=None):
        """Rows `x_offsets` (1-D tensor) of a 2-D array, from column `y_offset`, as wide as the block."""
        rows = _rows(_semantic, self, x_offsets, "gather")
        ty = block_type(self.dtype, (rows.type.shape[0], self.block_type.shape[1]))
        column = _offset(_semantic, y_offset)
        return tensor(_semantic.builder.descriptor_gather(self.handle, rows.handle, column.handle, ty), ty)

    @builtin
    def scatter(self, value, x_offsets, y_offset, _semantic=None):
        """Write the rows of `value` to rows `x_offsets` (1-D tensor) of a 2-D array, at column `y_offset`."""
        rows = _rows(_semantic, self, x_offsets, "scatter")
        shape = (rows.type.shape[0], self.block_type.shape[1])
        value = expect_tensor(value, "value")
        if value.type.shape != shape:
            raise ValueError(f"scatter: value must have shape {list(shape)}, got {shown(value)}")
        value = cast(_semantic, value, self.dtype)
        column = _offset(_semantic, y_offset)
        _semantic.builder.descriptor_scatter(self.handle, value.handle, rows.handle, column.handle, value.type)


def _offset(s: Semantic, x: Any) -> tensor:
    x = to_tensor(s, x)
    if x.type.is_block() or not x.dtype.is_int():
        raise TypeError(f"offsets of a tensor descriptor must be integer scalars, got {shown(x)}")
    return cast(s, x, int32)


def _offsets(s: Semantic, desc: tensor_descriptor, offsets: Any) -> list[Any]:
    offsets = offsets if isinstance(offsets, (tuple, list)) else (offsets,)
    if len(offsets) != len(desc.block_shape):
        raise ValueError(f"expected {len(desc.block_shape)} offsets for {desc}, got {len(offsets)}")
    return [_offset(s, x).handle for x in offsets]


def _block_value(s: Semantic, desc: tensor_descriptor, value: Any) -> tensor:
    value = expect_tensor(value, "value")
    if value.type.shape != desc.block_type.shape:
        raise ValueError(f"the value must have the descriptor's block shape {desc.block_shape}, got {shown(value)}")
    return cast(s, value, desc.dtype)


def _reduce(s: Semantic, desc: tensor_descriptor, kind: str, offsets: Any, value: Any, accepted: tuple[dtype, ...]) -> None:
    if desc.dtype not in accepted:
        raise ValueError(f"atomic_{kind} of a descriptor does not support {desc.dtype}; accepted: {', '.join(map(str, accepted))}")
    value = _block_value(s, desc, value)
    s.builder.descriptor_reduce(kind, desc.handle, value.handle, _offsets(s, desc, offsets), value.type)


def _rows(s: Semantic, desc: tensor_descriptor, x_offsets: Any, what: str) -> tensor:
    block = desc.block_type.shape
    if len(block) != 2 or block[0] != 1:
        raise ValueError(f"{what} needs a 2-D descriptor with block shape [1, N], got {list(block)}")
    rows = expect_tensor(x_offsets, "x_offsets")
    if len(rows.type.shape) != 1 or not rows.dtype.is_int() or rows.dtype.int_bitwidth not in (16, 32):
        raise ValueError(f"{what}: x_offsets must be a 1-D tensor of int16 or int32, got {shown(rows)}")
    if rows.type.shape[0] < 8:
        raise ValueError(f"{what} must have at least 8 rows, got {rows.type.shape[0]}")
    min_columns = 32 // desc.dtype.primitive_bitwidth * 8
    if block[1] < min_columns:
        raise ValueError(f"{what} of {desc.dtype} must have at least {min_columns} columns, got {block[1]}")
    return cast(s, rows, int32)


def load_block(s: Semantic, desc: tensor_descriptor, offsets: Any, cache_modifier: str, eviction_policy: str) -> tensor:
    cache = modifier(cache_modifier, LOAD_CACHE, "Cache modifier", ".")
    evict = modifier(eviction_policy, EVICTION, "Eviction policy")
    ty = desc.block_type
    return tensor(s.builder.descriptor_load(desc.handle, _offsets(s, desc, offsets), ty, cache=cache, evict=evict), ty)


@builtin
def make_tensor_descriptor(base, shape, strides, block_shape, padding_option="zero", _semantic=None):
    """Describe the array at the pointer `base`, of 1 to 5 dimensions, to be accessed in blocks of `block_shape`.

    `strides` are in elements; the last one is 1, and the others are multiples of 16 bytes, as `base` is. The last dimension of a block
    takes at least 16 bytes. `padding_option` ("zero" or, for floats, "nan") is what a load gives outside the array."""
    s = _semantic
    if not isinstance(base, tensor) or not base.dtype.is_ptr() or base.type.is_block():
        raise TypeError(f"make_tensor_descriptor: base must be a scalar pointer, got {shown(base)}")
    element = base.dtype.element_ty
    shape, strides, block = (v if isinstance(v, tuple) else (v,) for v in (shape, strides, block_shape))
    rank = len(block)
    if not 1 <= rank <= 5:
        raise ValueError(f"Expected 1 <= ndim <= 5 but got {rank} dimensions")
    if len(shape) != rank or len(strides) != rank:
        raise ValueError(
            f"make_tensor_descriptor: shape, strides and block_shape must be as long, got {len(shape)}, {len(strides)}, {rank}"
        )
    validate_block_shape(tuple(v.value if isinstance(v, constexpr) else v for v in block))
    width = block[-1] * element.primitive_bitwidth // 8
    if width < 16:
        raise ValueError(
            f"Descriptor block shape must have at least 16 bytes in the last dimension, but got {block[-1]} * {element.itemsize}"
        )
    last = s.known(strides[-1])
    if last != 1:
        raise ValueError(f"Tensor descriptor last dim must be 1 but got {strides[-1] if last is None else last}: pass the constant 1")
    for stride in strides[:-1]:
        if isinstance(stride, int) and stride * element.itemsize % 16:
            raise ValueError(f"make_tensor_descriptor: strides must be multiples of 16 bytes, got {stride} * {element.itemsize}")
    if padding_option not in ("zero", "nan"):
        raise ValueError(f"padding_option {padding_option!r} not supported; accepted: 'zero', 'nan'")
    if padding_option == "nan" and not element.is_floating():
        raise ValueError(f"padding_option 'nan' needs floats, the descriptor has {element}")
    shape = [_integer(s, v, int32, "shape") for v in shape]
    strides = [_integer(s, v, int64, "strides") for v in strides]
    ty = tensor_descriptor_type(block_type(element, block))
    handle = s.builder.make_descriptor(base.handle, [v.handle for v in shape], [v.handle for v in strides], padding_option, ty.block_type)
    return tensor_descriptor(handle, shape, strides, ty)


def _integer(s: Semantic, x: Any, ty: dtype, what: str) -> tensor:
    if isinstance(x, float) or isinstance(x, tensor) and (x.type.is_block() or not x.dtype.is_int()):
        raise TypeError(f"make_tensor_descriptor: {what} must be integer scalars, got {shown(x)}")
    return convert(s, x, ty)


@builtin
def load_tensor_descriptor(desc, offsets, _semantic=None):
    """`desc.load(offsets)`."""
    return _expect(desc).load(offsets, _semantic=_semantic)


@builtin
def store_tensor_descriptor(desc, offsets, value, _semantic=None):
    """`desc.store(offsets, value)`."""
    return _expect(desc).store(offsets, value, _semantic=_semantic)


def _expect(desc: Any) -> tensor_descriptor:
    if not isinstance(desc, tensor_descriptor):
        raise TypeError(f"a tensor descriptor is needed, got {shown(desc)}")
    return desc
