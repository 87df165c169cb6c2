"""Creation and shape of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import builtin, constexpr, shown, tensor
from ..core import slice as language_slice
from ..dtypes import block_type, dtype, int32, validate_block_shape, with_shape
from .cast import cast, expect_dtype
from .session import Semantic
from .values import broadcast_all, broadcast_to, constant, expect_tensor, is_number, to_tensor
from .values import broadcast_to as broadcast_tensor


def shape_argument(values: Sequence[Any]) -> tuple[int, ...]:
    """A shape given as varargs or as one tuple; every dimension an int and a power of two."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = values[0]
    shape = tuple(v.value if isinstance(v, constexpr) else v for v in values)
    validate_block_shape(shape)
    return shape


def axis_argument(axis: Any, rank: int, what: str = "axis") -> int:
    """`axis` in 0 .. rank - 1, negative ones counted from the end. ValueError naming the range otherwise."""
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(f"{what} must be a constexpr int, got {axis!r}")
    if not -rank <= axis < rank:
        raise ValueError(f"invalid {what} {axis}: a tensor of rank {rank} has {-rank} to {rank - 1}")
    return axis % rank


def unsplat(s: Semantic, x: tensor) -> tensor:
    """The element of a tensor with one element."""
    if not x.type.is_block():
        return x
    return tensor(s.builder.unsplat(x.handle, x.dtype), x.dtype)


# ---- creation -----------------------------------------------------------------------------------------------------------


def _grid_axis(axis: Any, what: str) -> int:
    if isinstance(axis, tensor) or axis not in (0, 1, 2):
        raise ValueError(f"{what} axis must be 0, 1, or 2 but got {shown(axis)}")
    return int(axis)


@builtin
def program_id(axis, _semantic=None):
    """int32 index of this program along `axis` (0, 1 or 2) of the grid."""
    return tensor(_semantic.builder.program_id(_grid_axis(axis, "program_id")), int32)


@builtin
def num_programs(axis, _semantic=None):
    """int32 number of programs along `axis` (0, 1 or 2) of the grid."""
    return tensor(_semantic.builder.num_programs(_grid_axis(axis, "num_programs")), int32)


@builtin
def arange(start, end, _semantic=None):
    """int32 values start, start + 1, ..., end - 1. Both are constexpr; end - start is a power of two."""
    for v in (start, end):
        if not isinstance(v, int) or isinstance(v, bool):
            raise ValueError(f"arange's arguments must be of type tl.constexpr (a Python int), got {shown(v)}")
    if end <= start:
        raise ValueError(f"arange's end argument must be greater than the start argument, got arange({start}, {end})")
    if not (-(2**31) <= start and end <= 2**31):
        raise ValueError(f"arange must fit in int32, got arange({start}, {end})")
    if (end - start) & (end - start - 1):
        raise ValueError(f"arange's range must be a power of 2, got arange({start}, {end}) of {end - start}; mask what is beyond the end")
    ty = block_type(int32, (end - start,))
    if start < 0:  # the bounds of a range in the IR are unsigned
        return tensor(_semantic.builder.arange(0, end - start, ty), ty) + start
    return tensor(_semantic.builder.arange(start, end, ty), ty)


@builtin
def full(shape, value, dtype, _semantic=None):
    """A tensor of `shape` filled with `value`, a number or a scalar tensor. An empty shape gives a scalar."""
    ty = expect_dtype(dtype, "dtype")
    shape = shape_argument([shape] if isinstance(shape, (tuple, list)) else [(shape,)])
    if is_number(value) and not ty.is_fp8():
        return constant(_semantic, value, with_shape(ty, shape))
    value = to_tensor(_semantic, value)
    if value.type.is_block():
        if value.type.numel != 1:
            raise ValueError(f"full needs a scalar value, got {shown(value)}")
        value = unsplat(_semantic, value)
    return broadcast_tensor(_semantic, cast(_semantic, value, ty), shape)


@builtin
def cat(input, other, can_reorder=False, dim=0, _semantic=None):
    """Concatenate two tensors of one shape along `dim`. `can_reorder` allows any order of the elements."""
    a, b = expect_tensor(input, "input"), expect_tensor(other, "other")
    if a.type is not b.type or not a.type.is_block():
        raise ValueError(f"cat needs two tensors of one shape and type, rank 1 or more, got {shown(a)} and {shown(b)}")
    dim = axis_argument(dim, len(a.type.shape), "dim")
    shape = list(a.type.shape)
    shape[dim] *= 2
    ty = block_type(a.dtype, shape)
    return tensor(_semantic.builder.cat(a.handle, b.handle, dim, ty), ty)


# ---- shape --------------------------------------------------------------------------------------------------------------


@builtin
def broadcast(input, other, _semantic=None):
    """Both tensors at their common shape, as a tuple; dimensions align on the right."""
    return tuple(broadcast_all(_semantic, to_tensor(_semantic, input), to_tensor(_semantic, other)))


@builtin
def broadcast_to_(input, *shape, _semantic=None):
    """The tensor at `shape` (varargs or a tuple): dimensions of size 1 are repeated, a scalar is repeated everywhere."""
    x, shape = to_tensor(_semantic, input), shape_argument(shape)
    if x.type.shape and len(x.type.shape) != len(shape):
        raise ValueError(f"broadcast_to: rank of {shown(x)} and of shape {list(shape)} differ; add dimensions with None indices")
    return broadcast_to(_semantic, x, shape)


broadcast_to_.__name__ = broadcast_to_.__qualname__ = "broadcast_to"


@builtin
def expand_dims(input, axis, _semantic=None):
    """Insert dimensions of size 1; `axis` (an int or several) counts in the result, negative from its end."""
    x = to_tensor(_semantic, input)
    axes = axis if isinstance(axis, tuple) else (axis,)
    rank = len(x.type.shape) + len(axes)
    places = [axis_argument(a, rank) for a in axes]
    if len(set(places)) != len(places):
        raise ValueError(f"expand_dims: duplicate axes in {list(axes)} for a result of rank {rank}")
    for place in sorted(places):
        shape = (*x.type.shape[:place], 1, *x.type.shape[place:])
        ty = block_type(x.dtype, shape)
        handle = x.handle
        x = tensor(_semantic.builder.expand_dims(handle, place, ty) if x.type.is_block() else _semantic.builder.splat(handle, ty), ty)
    return x


def reshape_to(s: Semantic, x: tensor, shape: tuple[int, ...], allow_reorder: bool = False) -> tensor:
    """Same elements, another shape; the shape () gives a scalar."""
    if x.type.shape == shape:
        return x
    if not x.type.is_block():
        if any(d != 1 for d in shape):
            raise ValueError(f"cannot reshape a scalar to {list(shape)}")
        return broadcast_to(s, x, shape)
    numel = 1
    for d in shape:
        numel *= d
    if numel != x.type.numel:
        raise ValueError(f"cannot reshape {shown(x)} of {x.type.numel} elements to {list(shape)} of {numel}")
    if not shape:
        return unsplat(s, x)
    ty = block_type(x.dtype, shape)
    return tensor(s.builder.reshape(x.handle, ty, allow_reorder), ty)


@builtin
def reshape(input, *shape, can_reorder=False, _semantic=None):
    """The same elements in row-major order, in a new shape (varargs or a tuple). `can_reorder` allows any order."""
    return reshape_to(_semantic, to_tensor(_semantic, input), shape_argument(shape), bool(can_reorder))


@builtin
def view(input, *shape, _semantic=None):
    """Deprecated: `reshape(..., can_reorder=True)`."""
    return reshape_to(_semantic, to_tensor(_semantic, input), shape_argument(shape), True)


def permute_to(s: Semantic, x: tensor, order: tuple[int, ...]) -> tensor:
    rank = len(x.type.shape)
    places = tuple(axis_argument(d, rank, "dims") for d in order)
    if sorted(places) != list(range(rank)):
        raise ValueError(f"permute dims must be a permutation of 0 to {rank - 1}, got {list(order)}")
    if places == tuple(range(rank)):
        return x
    ty = block_type(x.dtype, [x.type.shape[d] for d in places])
    return tensor(s.builder.trans(x.handle, places, ty), ty)


def _order(dims: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], tuple) else dims


@builtin
def trans(input, *dims, _semantic=None):
    """Permute dimensions: `dims` (varargs or a tuple), by default the last two swapped."""
    x = expect_tensor(input, "input")
    rank = len(x.type.shape)
    if not dims:
        if rank < 2:
            raise ValueError(f"trans needs a tensor of rank 2 or more, got {shown(x)}")
        dims = (*range(rank - 2), rank - 1, rank - 2)
    return permute_to(_semantic, x, _order(dims))


@builtin
def permute(input, *dims, _semantic=None):
    """Permute dimensions: dimension i of the result is dimension `dims[i]` (varargs or a tuple) of the input."""
    return permute_to(_semantic, expect_tensor(input, "input"), _order(dims))


@builtin
def join(a, b, _semantic=None):
    """Two tensors along a new last dimension of size 2. They are broadcast; two scalars give shape [2]."""
    a, b = broadcast_all(_semantic, to_tensor(_semantic, a), to_tensor(_semantic, b))
    if a.dtype is not b.dtype:
        raise TypeError(f"join needs tensors of one type, got {a.dtype} and {b.dtype}")
    scalars = not a.type.is_block()
    if scalars:
        a, b = broadcast_to(_semantic, a, (1,)), broadcast_to(_semantic, b, (1,))
    ty = block_type(a.dtype, (*a.type.shape, 2))
    joined = tensor(_semantic.builder.join(a.handle, b.handle, ty), ty)
    return reshape_to(_semantic, joined, (2,)) if scalars else joined


@builtin
def split(a, _semantic=None):
    """The two halves of a tensor along its last dimension, which has size 2; of shape [2], two scalars."""
    x = expect_tensor(a, "a")
    shape = x.type.shape
    if not shape or shape[-1] != 2:
        raise ValueError(f"split needs a last dimension of size 2, got {shown(x)}")
    if len(shape) == 1:
        x = reshape_to(_semantic, x, (1, 2))
    ty = block_type(x.dtype, x.type.shape[:-1])
    halves = [tensor(h, ty) for h in _semantic.builder.split(x.handle, ty)]
    return tuple(unsplat(_semantic, h) for h in halves) if len(shape) == 1 else tuple(halves)


@builtin
def item(x, _semantic=None):
    """The element of a tensor with one element, as a scalar."""
    if x.type.is_block() and x.type.numel != 1:
        raise ValueError(f"item needs a tensor of one element, got {shown(x)}")
    return unsplat(_semantic, x)


@builtin
def gather(src, index, axis, _semantic=None):
    """Elements of `src` at `index` along `axis`; the other dimensions agree. The result has the shape of `index`."""
    src, index = expect_tensor(src, "src"), expect_tensor(index, "index")
    if not index.dtype.is_int():
        raise TypeError(f"gather needs an integer index, got {index.dtype}")
    rank = len(src.type.shape)
    if rank == 0 or len(index.type.shape) != rank:
        raise ValueError(f"gather needs source and index of one rank, 1 or more, got {shown(src)} and {shown(index)}")
    axis = axis_argument(axis, rank)
    for d in range(rank):
        if d != axis and src.type.shape[d] != index.type.shape[d]:
            raise ValueError(f"gather along axis {axis}: dimension {d} of {shown(src)} and of the index {shown(index)} must be equal")
    ty = block_type(src.dtype, index.type.shape)
    return tensor(_semantic.builder.gather(src.handle, cast(_semantic, index, int32).handle, axis, ty), ty)


@builtin
def histogram(input, num_bins, mask=None, _semantic=None):
    """int32 counts of the values 0 to num_bins - 1 of a 1-D int32 or uint32 tensor, where `mask` is set. Other values must not occur."""
    x = expect_tensor(input, "input")
    if len(x.type.shape) != 1 or not x.dtype.is_int() or x.dtype.int_bitwidth != 32:
        raise ValueError(f"histogram needs a 1-D tensor of int32 or uint32, got {shown(x)}")
    ty = block_type(int32, shape_argument([num_bins]))
    if mask is not None:
        mask = broadcast_to(_semantic, to_tensor(_semantic, mask), x.type.shape)
        if not mask.dtype.is_bool():
            raise TypeError(f"the mask of histogram must be int1, got {mask.dtype}")
    return tensor(_semantic.builder.histogram(x.handle, None if mask is None else mask.handle, x.type, ty), ty)


def index_tensor(s: Semantic, x: tensor, index: Any) -> tensor:
    """`x[index]`: `:` keeps a dimension, None adds one."""
    items = index if isinstance(index, tuple) else (index,)
    for place, item_ in enumerate(items):
        item_ = item_.value if isinstance(item_, constexpr) else item_
        if item_ is None:
            x = expand_dims(x, place, _semantic=s)
        elif isinstance(item_, (slice, language_slice)) and all(v is None for v in (item_.start, item_.stop, item_.step)):
            if place >= len(x.type.shape):
                raise ValueError(f"too many indices for tensor of rank {sum(i is not None for i in items) - 1}")
        else:
            shown = f"{item_.start}:{item_.stop}" if isinstance(item_, (slice, language_slice)) else item_
            raise ValueError(f"unsupported tensor index: {shown}; a tensor is indexed by `:` and None only (tl.gather picks elements)")
    return x


def zeros_like_type(s: Semantic, ty: dtype) -> tensor:
    """Zeros of a scalar or block type."""
    scalar = ty.scalar
    return cast(s, constant(s, 0, ty.with_element_ty(int32)), scalar) if scalar.is_fp8() or scalar.is_ptr() else constant(s, 0, ty)
