"""Operators, methods and properties of `tensor`, bound to the functions that define them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import sorting, standard
from .core import active, base_value, shown, tensor, unwrap
from .semantic import arith, atomics, block_pointer, math, memory, regions, shape
from .semantic.cast import builtin_cast

_MATH = ("abs", "ceil", "cos", "erf", "exp", "exp2", "floor", "log", "log2", "rsqrt", "sin", "sqrt", "sqrt_rn")
_ATOMIC = ("add", "and", "cas", "load", "max", "min", "or", "poll", "store", "xchg", "xor")
_STANDARD = (
    "argmax", "argmin", "cdiv", "cumprod", "cumsum", "max", "min", "ravel", "reduce_or", "sigmoid", "softmax", "sum", "xor_sum",
)  # fmt: skip
_SHAPE = ("expand_dims", "gather", "histogram", "item", "permute", "reshape", "split", "trans", "view")

METHODS: dict[str, Callable] = {
    **{name: getattr(math, name) for name in _MATH},
    **{f"atomic_{name}": getattr(atomics, f"atomic_{name}") for name in _ATOMIC},
    **{name: getattr(standard, name) for name in _STANDARD},
    **{name: getattr(shape, name) for name in _SHAPE},
    "advance": block_pointer.advance,
    "associative_scan": regions.associative_scan,
    "broadcast_to": shape.broadcast_to_,
    "cast": builtin_cast,
    "flip": sorting.flip,
    "logical_and": arith.logical_and,
    "logical_or": arith.logical_or,
    "__not__": arith.logical_not,
    "reduce": regions.reduce,
    "sort": sorting.sort,
    "store": memory.store,
    "to": builtin_cast,
}

_OPERATORS = {
    "add": arith.add, "sub": arith.sub, "mul": arith.mul, "truediv": arith.truediv, "floordiv": arith.floordiv, "mod": arith.mod,
    "and": arith.and_, "or": arith.or_, "xor": arith.xor_, "lshift": arith.lshift, "rshift": arith.rshift,
}  # fmt: skip


def _operator(fn: Callable, reflected: bool) -> Callable:
    def method(self, other, _semantic=None):
        # user types decide for themselves what an operator with them means
        if isinstance(other, base_value) and not isinstance(other, tensor):
            return NotImplemented
        return fn(other, self, _semantic=_semantic) if reflected else fn(self, other, _semantic=_semantic)

    return method


def _comparison(op: str) -> Callable:
    def method(self, other, _semantic=None):
        if isinstance(other, base_value) and not isinstance(other, tensor):
            return NotImplemented
        return arith.compare(_semantic or active(), op, self, unwrap(other))

    return method


def _getitem(self, index, _semantic=None):
    return shape.index_tensor(_semantic or active(), self, unwrap(index))


def _transposed(self) -> Any:
    if len(self.type.shape) != 2:
        raise ValueError(f".T needs a tensor of rank 2, got {shown(self)}; use tl.trans or tl.permute")
    return shape.permute(self, 1, 0)


def bind() -> None:
    """Give `tensor` its operators and methods, and block pointers theirs."""
    for name, fn in METHODS.items():
        setattr(tensor, name, fn)
    for name, fn in _OPERATORS.items():
        setattr(tensor, f"__{name}__", _operator(fn, False))
        setattr(tensor, f"__r{name}__", _operator(fn, True))
    for op in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(tensor, f"__{op}__", _comparison(op))
    tensor.__neg__ = lambda self, _semantic=None: arith.negate(_semantic or active(), self)
    tensor.__invert__ = lambda self, _semantic=None: arith.invert(self, _semantic=_semantic)
    tensor.__getitem__ = _getitem
    tensor.T = property(_transposed)
    # a block pointer takes the place of a tensor of pointers
    block_pointer.block_pointer.advance = block_pointer.advance
    block_pointer.block_pointer.store = memory.store


bind()
