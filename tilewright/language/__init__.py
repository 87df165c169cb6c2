"""The language of kernels: `import tilewright.language as tl`."""

from __future__ import annotations

from . import core, extra, math, methods, random, semantic, standard, target_info
from .core import PropagateNan, const, constexpr, must_use_result, slice, tensor, tuple
from .dtypes import (
    TRITON_MAX_TENSOR_NUMEL, bfloat16, block_type, constexpr_type, dtype, float8e4b8, float8e4b15, float8e4nv, float8e5, float8e5b16, float16,
    float32, float64, get_int_dtype, int1, int8, int16, int32, int64, pi32_t, pointer_type, slice_type, str_to_ty, tensor_descriptor_type,
    tuple_type, uint8, uint16, uint32, uint64, void,
)  # fmt: skip
from .functions import aggregate_replace
from .iterators import condition, range, static_range
from .math import abs, ceil, cos, div_rn, erf, exp, exp2, fdiv, floor, fma, log, log2, rsqrt, sin, sqrt, sqrt_rn, umulhi
from .random import (
    pair_uniform_to_normal, philox, philox_impl, rand, rand4x, randint, randint4x, randn, randn4x, uint_to_uniform_float,
)  # fmt: skip
from .semantic.arith import add, clamp, maximum, minimum, mul, sub, where
from .semantic.asm import extern_elementwise, inline_asm_elementwise
from .semantic.atomics import (
    atomic_add, atomic_and, atomic_cas, atomic_load, atomic_max, atomic_min, atomic_or, atomic_poll, atomic_store, atomic_xchg, atomic_xor,
)  # fmt: skip
from .semantic.block_pointer import advance, make_block_ptr
from .semantic.cast import builtin_cast as cast
from .semantic.cast import builtin_to_tensor as to_tensor
from .semantic.debug import (
    assume, debug_barrier, device_assert, device_print, expect_zero, max_constancy, max_contiguous, multiple_of, static_assert, static_print,
)  # fmt: skip
from .semantic.descriptor import load_tensor_descriptor, make_tensor_descriptor, store_tensor_descriptor, tensor_descriptor
from .semantic.linalg import dot, dot_scaled
from .semantic.memory import load, store
from .semantic.regions import associative_scan, map_elementwise, reduce
from .semantic.shape import (
    arange, broadcast, cat, expand_dims, full, gather, histogram, join, num_programs, permute, program_id, reshape, split, trans, view,
)  # fmt: skip
from .semantic.shape import broadcast_to_ as broadcast_to
from .sorting import bitonic_merge, flip, sort, topk
from .standard import (
    argmax, argmin, cdiv, cumprod, cumsum, interleave, max, min, ravel, reduce_or, sigmoid, softmax, squeeze, sum, swizzle2d, unsqueeze,
    xor_sum, zeros, zeros_like,
)  # fmt: skip

# names that Triton has in `triton.language.core` alone
_CORE_ONLY = {
    "aggregate": ("functions", "aggregate"),
    "_aggregate": ("functions", "aggregate"),
    "constexpr_function": ("functions", "constexpr_function"),
    "aggregate_type": ("functions", "aggregate_type"),
    "base_type": ("dtypes", "base_type"),
    "builtin_max": ("standard", "builtin_max"),
    "builtin_min": ("standard", "builtin_min"),
    "dispatch": ("semantic.asm", "dispatch"),
    "block_pointer": ("semantic.block_pointer", "block_pointer"),
}


def _lookup(name: str):
    """A type or builtin of the language by name, for `triton.language.core`."""
    import importlib

    if name in globals():
        return globals()[name]
    if name in _CORE_ONLY:
        module, attribute = _CORE_ONLY[name]
        return getattr(importlib.import_module(f".{module}", __name__), attribute)
    raise AttributeError(f"module 'tilewright.language.core' has no attribute {name!r}")


__all__ = [
    "PropagateNan", "TRITON_MAX_TENSOR_NUMEL", "abs", "add", "advance", "aggregate_replace", "arange", "argmax", "argmin", "associative_scan",
    "assume", "atomic_add", "atomic_and", "atomic_cas", "atomic_load", "atomic_max", "atomic_min", "atomic_or", "atomic_poll", "atomic_store",
    "atomic_xchg", "atomic_xor", "bfloat16", "bitonic_merge", "block_type", "broadcast", "broadcast_to", "cast", "cat", "cdiv", "ceil",
    "clamp", "condition", "const", "constexpr", "constexpr_type", "core", "cos", "cumprod", "cumsum", "debug_barrier", "device_assert",
    "device_print", "div_rn", "dot", "dot_scaled", "dtype", "erf", "exp", "exp2", "expand_dims", "expect_zero", "extern_elementwise", "extra",
    "fdiv", "flip", "float16", "float32", "float64", "float8e4b15", "float8e4b8", "float8e4nv", "float8e5", "float8e5b16", "floor", "fma",
    "full", "gather", "get_int_dtype", "histogram", "inline_asm_elementwise", "int1", "int16", "int32", "int64", "int8", "interleave", "join",
    "load", "load_tensor_descriptor", "log", "log2", "make_block_ptr", "make_tensor_descriptor", "map_elementwise", "math", "max",
    "max_constancy", "max_contiguous", "maximum", "methods", "min", "minimum", "mul", "multiple_of", "must_use_result", "num_programs",
    "pair_uniform_to_normal", "permute", "philox", "philox_impl", "pi32_t", "pointer_type", "program_id", "rand", "rand4x", "randint",
    "randint4x", "randn", "randn4x", "random", "range", "ravel", "reduce", "reduce_or", "reshape", "rsqrt", "semantic", "sigmoid", "sin",
    "slice", "slice_type", "softmax", "sort", "split", "sqrt", "sqrt_rn", "squeeze", "standard", "static_assert", "static_print",
    "static_range", "store", "store_tensor_descriptor", "str_to_ty", "sub", "sum", "swizzle2d", "target_info", "tensor", "tensor_descriptor",
    "tensor_descriptor_type", "to_tensor", "topk", "trans", "tuple", "tuple_type", "uint16", "uint32", "uint64", "uint8",
    "uint_to_uniform_float", "umulhi", "unsqueeze", "view", "void", "where", "xor_sum", "zeros", "zeros_like",
]  # fmt: skip
