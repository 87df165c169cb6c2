"""Functions that the programs of `api_registry.py` use, made for the interpreter or for the compiler by the `jit` that is given."""

from __future__ import annotations

import contextlib
from collections import namedtuple
from types import ModuleType
from typing import Any

import tilewright
import tilewright.language as tl
from tilewright.language.core import base_value, builtin, extern, flatten, tensor

named = namedtuple("named", ["first", "second"])

THREE = tl.constexpr(3)


@builtin
def put(pointer, value, _semantic=None):
    """Store every number in `value` to fp64 memory, one after the other; pointers as 1."""
    at = 0
    constants = [value] if isinstance(value, (bool, int, float)) else []
    for leaf in [*flatten(value), *constants]:
        if isinstance(leaf, base_value) and not isinstance(leaf, tensor):
            continue
        leaf = leaf if isinstance(leaf, tensor) else tl.full((), float(leaf), tl.float64)
        numbers = (leaf.to(tl.int64) != 0 if leaf.dtype.is_ptr() else leaf).to(tl.float64)
        if numbers.type.is_block():
            count = numbers.numel.value
            tl.store(pointer + at + tl.arange(0, count), tl.ravel(numbers))
        else:
            count = 1
            tl.store(pointer + at, numbers)
        at += count


@extern
def cube_root(x, _semantic=None):
    return tl.extern_elementwise("libdevice", "", [x], {(tl.float32,): ("__nv_cbrtf", tl.float32)}, is_pure=True, _semantic=_semantic)


@builtin
def dispatched(x, _semantic=None):
    symbols = {(tl.float32,): ("__nv_cbrtf", tl.float32)}
    return tl.core.dispatch(None, "libdevice", "", [x], symbols, x.type, True, _semantic=_semantic)


@builtin
def twice(x, _semantic=None):
    return tl.add(x, x, _semantic=_semantic)


@tl.constexpr_function
def plus_one(value):
    return value + 1


@builtin
def nothing(_semantic=None):
    return contextlib.nullcontext()


def helpers(jit: Any) -> dict[str, Any]:
    """The functions by name."""

    @jit
    def largest(p, r):
        return tl.maximum(p, r)

    @jit
    def affine(p, v, r, t):
        return p * r, v * r.to(v.dtype) + t

    @jit
    def collatz_steps(v):
        steps = 0
        while v > 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += 1
        return steps

    @jit
    def fp8_bits(R: tl.constexpr, C: tl.constexpr):
        r = tl.arange(0, R)[:, None] * 3 + tl.arange(0, C)[None, :]
        return (r % 7).to(tl.float32).to(tl.float8e5).to(tl.uint8, bitcast=True)

    @jit
    def load_constant(p: tl.const):
        return tl.load(p)

    @jit
    def varied(first, *rest, scale: tl.constexpr = 2):
        return (first + rest[0] + rest[1]) * scale

    @jit
    def two_results(p, r):
        return p + r, p * r

    @jit
    def early_return(v):
        if v > 100:
            return v
        return v + 1

    @jit
    def apply(fn: tl.constexpr, p, r):
        return fn(p, r)

    @jit
    def power(v, n: tl.constexpr):
        return v if n == 1 else v * power(v, n - 1)

    @jit(noinline=True)
    def outlined(v, t):
        return v * t + 1

    offset = tl.constexpr(2)

    @jit
    def closed(v):
        return v + offset

    @jit
    def scaled(v):
        return v * 3

    @tilewright.aggregate
    class Pair:
        first: tl.tensor
        second: tl.tensor

        @jit
        def total(self):
            return self.first + self.second

    module = ModuleType("helpers_module")
    module.scaled = scaled
    return {
        **{name: value for name, value in locals().items() if name not in ("jit", "module", "offset")},
        **{f.__name__: f for f in (put, cube_root, dispatched, twice, nothing, plus_one, named)},
        "THREE": THREE,
        "helpers_module": module,
        "libdevice": tl.extra.libdevice,
    }
