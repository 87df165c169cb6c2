"""Block pointers: a window on an array, carried as scalars and expanded into pointers and a mask where it is accessed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core import base_value, builtin, leaf, must_use_result, shown, tensor
from ..dtypes import base_type, block_type, dtype, int32, int64, pointer_type, validate_block_shape
from .arith import add, and_, compare, emit_binary, mul, sub
from .cast import cast, convert
from .session import Semantic
from .shape import arange, axis_argument, expand_dims
from .values import broadcast_to, constant


class block_pointer_type(base_type):
    """Type of a block pointer: what it points to, and the order of the dimensions in memory (fastest first)."""

    def __init__(self, element_ty: dtype, block_shape: tuple[int, ...], order: tuple[int, ...]):
        self.element_ty, self.block_shape, self.order = element_ty, block_shape, order

    def __eq__(self, other: object) -> bool:
        return isinstance(other, block_pointer_type) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.element_ty, self.block_shape, self.order))

    def mangle(self) -> str:
        return f"BP{block_type(self.element_ty, self.block_shape).mangle()}"

    def __repr__(self) -> str:
        return f"pointer<{block_type(self.element_ty, self.block_shape)}>"


class block_pointer(base_value):
    """A block of `block_shape` at `offsets` (int32) of an array at `base` with `shape` and `strides` (int64)."""

    def __init__(self, base: tensor, shape, strides, offsets, block_shape: tuple[int, ...], order: tuple[int, ...]):
        self.base = base
        self.shape, self.strides, self.offsets = tuple(shape), tuple(strides), tuple(offsets)
        self.block_shape, self.order = block_shape, order
        self.type = block_pointer_type(base.dtype.element_ty, block_shape, order)

    @property
    def element_ty(self) -> dtype:
        return self.base.dtype.element_ty

    @property
    def dtype(self) -> pointer_type:
        return self.base.dtype

    def _leaves(self) -> list[leaf]:
        return [self.base, *self.shape, *self.strides, *self.offsets]

    def _with_leaves(self, leaves: Iterator[leaf]) -> block_pointer:
        base = next(leaves)
        shape, strides, offsets = ([next(leaves) for _ in self.shape] for _ in range(3))
        return block_pointer(base, shape, strides, offsets, self.block_shape, self.order)

    def moved(self, s: Semantic, by: tuple[Any, ...]) -> block_pointer:
        """The block `by` elements further in each dimension."""
        if len(by) != len(self.offsets):
            raise ValueError(f"advance needs {len(self.offsets)} offsets, got {len(by)}")
        offsets = [cast(s, add(o, d, False, _semantic=s), int32) for o, d in zip(self.offsets, by)]
        return block_pointer(self.base, self.shape, self.strides, offsets, self.block_shape, self.order)

    def addresses(self, s: Semantic, boundary_check: Any) -> tuple[tensor, tensor | None]:
        """Pointers to all elements of the block, and a mask of those inside the array in the dimensions of `boundary_check`.

        All that varies with the offsets is scalar, so that the tensor part leaves the loops in which the block moves."""
        rank = len(self.block_shape)
        checked = {axis_argument(d, rank, "boundary_check dimension") for d in _as_tuple(boundary_check)}
        if len(checked) != len(_as_tuple(boundary_check)):
            raise ValueError(f"duplicate dimension in boundary_check {boundary_check}")
        base, spread, mask = self.base, None, None
        for d, size in enumerate(self.block_shape):
            offset = cast(s, self.offsets[d], int64)
            base = add(base, mul(offset, self.strides[d], False, _semantic=s), _semantic=s)
            lane = arange(0, size, _semantic=s)
            steps = self._along(s, mul(cast(s, lane, int64), self.strides[d], False, _semantic=s), d)
            spread = steps if spread is None else add(spread, steps, False, _semantic=s)
            if d in checked:
                inside = self._along(s, self._inside(s, lane, offset, d), d)
                mask = inside if mask is None else and_(mask, inside, _semantic=s)
        ptr = add(base, spread, _semantic=s)
        return ptr, None if mask is None else broadcast_to(s, mask, self.block_shape)

    def _inside(self, s: Semantic, lane: tensor, offset: tensor, d: int) -> tensor:
        """0 <= offset + lane < shape, with the bounds on `lane` as scalars that fit int32."""

        def bound(x: tensor) -> tensor:
            low, high = constant(s, 0, int64), constant(s, self.block_shape[d], int64)
            return cast(s, emit_binary(s, "minsi", emit_binary(s, "maxsi", x, low), high), int32)

        first = bound(sub(0, offset, False, _semantic=s))
        end = bound(sub(self.shape[d], offset, False, _semantic=s))
        return and_(compare(s, "ge", lane, first), compare(s, "lt", lane, end), _semantic=s)

    def _along(self, s: Semantic, x: tensor, d: int) -> tensor:
        """A 1-D tensor laid along dimension `d` of the block."""
        others = tuple(i for i in range(len(self.block_shape)) if i != d)
        return expand_dims(x, others, _semantic=s) if others else x


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _integers(s: Semantic, values: Any, ty: dtype, what: str) -> list[tensor]:
    out = []
    for v in _as_tuple(values):
        if isinstance(v, float) or isinstance(v, tensor) and (v.type.is_block() or not v.dtype.is_int()):
            raise TypeError(f"make_block_ptr: {what} must be integer scalars, got {shown(v)}")
        out.append(convert(s, v, ty))
    return out


@builtin
def make_block_ptr(base, shape, strides, offsets, block_shape, order, _semantic=None):
    """A pointer to the block of `block_shape` at `offsets` of the array at `base` of `shape` and `strides`.

    `order` lists the dimensions from the fastest varying in memory. Loads and stores take the result with `boundary_check`; `advance` moves
    it."""
    if not isinstance(base, tensor) or not base.dtype.is_ptr() or base.type.is_block():
        raise ValueError(f"make_block_ptr: base must be a scalar pointer, got {shown(base)}")
    block, order = _as_tuple(block_shape), _as_tuple(order)
    validate_block_shape(block)
    lists = {
        "shape": _integers(_semantic, shape, int64, "shape"),
        "strides": _integers(_semantic, strides, int64, "strides"),
        "offsets": _integers(_semantic, offsets, int32, "offsets"),
    }
    for what, values in lists.items():
        if len(values) != len(block):
            raise ValueError(f"make_block_ptr: {what} has {len(values)} items, block_shape has {len(block)}; they must be as many")
    if sorted(order) != list(range(len(block))):
        raise ValueError(f"make_block_ptr: order must be a permutation of 0 to {len(block) - 1}, got {list(order)}")
    return block_pointer(base, lists["shape"], lists["strides"], lists["offsets"], block, order)


@must_use_result("the block pointer is not moved in place: write `ptr = tl.advance(ptr, offsets)`")
@builtin
def advance(base, offsets, _semantic=None):
    """The block pointer moved by `offsets` elements in each dimension."""
    if not isinstance(base, block_pointer):
        raise TypeError(f"advance needs a block pointer made by make_block_ptr, got {shown(base)}")
    return base.moved(_semantic, _as_tuple(offsets))
