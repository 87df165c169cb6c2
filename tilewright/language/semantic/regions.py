"""Operations with a function of the user inside: reductions, scans, elementwise maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import builtin, shown, tensor
from ..dtypes import block_type, with_shape
from .session import Semantic
from .shape import axis_argument, expand_dims, join, reshape_to, split
from .values import broadcast_all, expect_tensor, is_number, to_tensor


def _results(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _combine(s: Semantic, fn: Any, sources: Sequence[tensor], what: str) -> Callable[..., list[Any]]:
    """`fn` as the builder calls it: on handles of scalars, or of tensors of a shape."""
    dtypes = [x.dtype for x in sources]

    def combine(args: Sequence[Any], shape: tuple[int, ...] = ()) -> list[Any]:
        values = [tensor(h, with_shape(ty, shape)) for h, ty in zip(args, dtypes * 2)]
        results = [to_tensor(s, r) if is_number(r) else r for r in _results(s.call(fn, tuple(values)))]
        if len(results) != len(dtypes):
            raise ValueError(f"the combine function of {what} must return {len(dtypes)} values, one per operand, got {len(results)}")
        for i, (result, ty) in enumerate(zip(results, dtypes)):
            if not isinstance(result, tensor) or result.dtype is not ty:
                got = result.dtype if isinstance(result, tensor) else type(result).__name__
                raise TypeError(f"result {i} of the combine function of {what} must be {ty} like its operand, got {got}")
        return [r.handle for r in results]

    return combine


def commutative(fn: Callable) -> Callable:
    """Mark a combine function of the language: a reduction need not keep the order of its operands."""
    fn.commutes = True
    return fn


def _sources(s: Semantic, input: Any, what: str) -> list[tensor]:
    """The operands: tensors of one shape, rank 1 or more."""
    sources = [expect_tensor(x, f"the input of {what}") for x in _results(input)]
    if not sources:
        raise ValueError(f"{what} needs at least one tensor")
    shape = sources[0].type.shape
    if any(x.type.shape != shape for x in sources):
        raise ValueError(f"all operands of {what} must have one shape, got {', '.join(map(shown, sources))}")
    return sources


def reduce_along(s: Semantic, sources: list[tensor], axis: int, fn: Any) -> list[tensor]:
    """Reduce along one axis; the dimension goes, a tensor of rank 1 becomes a scalar."""
    shape = sources[0].type.shape
    tys = [with_shape(x.dtype, shape[:axis] + shape[axis + 1 :]) for x in sources]
    combine, types = _combine(s, fn, sources, "reduce"), [x.type for x in sources]
    handles = s.builder.reduce([x.handle for x in sources], axis, combine, types, tys, commutative=getattr(fn, "commutes", False))
    return [tensor(h, ty) for h, ty in zip(handles, tys)]


@builtin
def reduce(input, axis, combine_fn, keep_dims=False, _semantic=None):
    """Combine all elements along `axis` (None: all) by `combine_fn`.

    `input` is a tensor, or a tuple of n tensors of one shape that are reduced together: then `combine_fn` takes 2n scalars and returns n.
    It must be associative; the order of operands is kept. `keep_dims` leaves a dimension of size 1."""
    s = _semantic
    sources = _sources(s, input, "reduce")
    rank = len(sources[0].type.shape)
    if rank == 0:
        raise ValueError(f"reduce needs tensors of rank 1 or more, got {sources[0]}")
    if axis is None:
        flat = [reshape_to(s, x, (x.type.numel,)) for x in sources]
        results = reduce_along(s, flat, 0, combine_fn)
        if keep_dims:
            results = [reshape_to(s, r, (1,) * rank) for r in results]
    else:
        axis = axis_argument(axis, rank)
        results = reduce_along(s, sources, axis, combine_fn)
        if keep_dims:
            results = [expand_dims(r, axis, _semantic=s) for r in results]
    return tuple(results) if isinstance(input, tuple) else results[0]


@builtin
def associative_scan(input, axis, combine_fn, reverse=False, _semantic=None):
    """Running combination along `axis`: element i of the result combines elements 0 to i, or i to the last if `reverse`.

    `input` and `combine_fn` as in `reduce`."""
    s = _semantic
    sources = _sources(s, input, "associative_scan")
    axis = axis_argument(axis, len(sources[0].type.shape))
    types = [x.type for x in sources]
    handles = s.builder.scan([x.handle for x in sources], axis, bool(reverse), _combine(s, combine_fn, sources, "associative_scan"), types)
    results = [tensor(h, ty) for h, ty in zip(handles, types)]
    return tuple(results) if isinstance(input, tuple) else results[0]


@builtin
def map_elementwise(scalar_fn, *args, pack=1, _semantic=None):
    """Apply `scalar_fn`, a @jit function on scalars with any control flow, to each element of tensors of one shape.

    With `pack` > 1 it takes and returns `pack` consecutive elements, in row-major order, of each tensor at a time: those of the first
    tensor, then those of the second, ... Returns a tensor, or a tuple if it does."""
    s = _semantic
    if not args:
        raise ValueError("map_elementwise needs at least one tensor")
    if not isinstance(pack, int) or pack < 1 or pack & (pack - 1):
        raise ValueError(f"map_elementwise: pack must be a power of 2, got {pack}")
    sources = broadcast_all(s, *(to_tensor(s, a) for a in args))
    shape = sources[0].type.shape
    if not shape:
        raise ValueError("map_elementwise needs tensors of rank 1 or more; call the function on scalars")
    if sources[0].type.numel % pack:
        raise ValueError(f"map_elementwise: pack {pack} must divide the number of elements {sources[0].type.numel}")
    parts = [part for x in sources for part in _parts(s, x, pack)]
    found: dict[str, Any] = {}

    def body(handles: Sequence[Any]) -> list[Any]:
        values = [tensor(h, part.dtype) for h, part in zip(handles, parts)]
        returned = s.call(scalar_fn, tuple(values))
        results = [to_tensor(s, r) for r in _results(returned)]
        if len(results) % pack:
            raise ValueError(f"map_elementwise: with pack {pack} the function must return a multiple of {pack} values, got {len(results)}")
        dtypes = [r.dtype for r in results[::pack]]
        if any(r.type is not dtypes[i // pack] for i, r in enumerate(results)):
            raise TypeError(f"map_elementwise: the {pack} values of a result must be scalars of one type")
        found.update(dtypes=dtypes, single=len(dtypes) == 1 and (pack > 1 or not isinstance(returned, (tuple, list))))
        return [r.handle for r in results]

    handles = s.builder.map_elementwise([x.handle for x in parts], body, [x.type for x in parts])
    pieces = [tensor(h, block_type(found["dtypes"][i // pack], parts[0].type.shape)) for i, h in enumerate(handles)]
    results = tuple(_whole(s, pieces[i : i + pack], shape) for i in range(0, len(pieces), pack))
    return results[0] if found["single"] else results


def _parts(s: Semantic, x: tensor, pack: int) -> list[tensor]:
    """Of each `pack` consecutive elements of x the first, the second, ..., as `pack` tensors of rank 1; x itself for 1."""
    if pack == 1:
        return [x]
    halves = split(reshape_to(s, x, (x.type.numel // 2, 2)), _semantic=s)
    return [part for pair in zip(*(_parts(s, half, pack // 2) for half in halves)) for part in pair]


def _whole(s: Semantic, parts: list[tensor], shape: tuple[int, ...]) -> tensor:
    """The tensor of `shape` with these `_parts`."""
    if len(parts) == 1:
        return parts[0]
    half = (len(parts) // 2 * parts[0].type.numel,)
    return reshape_to(s, join(_whole(s, parts[0::2], half), _whole(s, parts[1::2], half), _semantic=s), shape)
