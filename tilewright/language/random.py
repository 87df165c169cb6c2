"""Random numbers that depend only on a seed and an offset: the Philox counter-based generator."""

from __future__ import annotations

import builtins

from .core import active, builtin, tensor
from .dtypes import int32, int64, uint32, uint64
from .semantic.arith import add, maximum, mul, where
from .semantic.cast import bitcast, cast
from .semantic.math import cos, log, sin, sqrt, umulhi
from .semantic.values import constant, to_tensor

N_ROUNDS_DEFAULT = 10

# bits -> key increments and multipliers of Philox-4x32 and Philox-4x64
_KEYS = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}
_MULTIPLIERS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}


@builtin
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds=N_ROUNDS_DEFAULT):
    """`n_rounds` rounds of Philox on the counter (c0, c1, c2, c3) under the key (k0, k1), all uint32 or all uint64."""
    s, bits = active(), c0.dtype.primitive_bitwidth
    key0, key1 = _KEYS[bits]
    mult0, mult1 = (constant(s, m, c0.dtype) for m in _MULTIPLIERS[bits])
    for _ in builtins.range(n_rounds):
        c0, c2, old0, old2 = umulhi(mult1, c2) ^ k0 ^ c1, umulhi(mult0, c0) ^ k1 ^ c3, c0, c2
        c1, c3 = mul(mult1, old2, False), mul(mult0, old0, False)
        k0, k1 = add(k0, key0, False), add(k1, key1, False)
    return c0, c1, c2, c3


@builtin
def philox(seed, c0, c1, c2, c3, n_rounds=N_ROUNDS_DEFAULT):
    """Four random words of the width of the counter, 32 or 64 bits."""
    s = active()
    seed = cast(s, _integer(to_tensor(s, seed), "seed"), uint64)
    counter = [_integer(to_tensor(s, c), "counter") for c in (c0, c1, c2, c3)]
    width = counter[0].dtype.int_bitwidth
    if width not in _KEYS or any(c.dtype.int_bitwidth != width for c in counter):
        raise TypeError(f"philox needs counters of 32 or of 64 bits, got {', '.join(str(c.dtype) for c in counter)}")
    if width == 32:
        word, key = uint32, (cast(s, seed, uint32), cast(s, seed >> 32, uint32))
    else:
        word, key = uint64, (seed, constant(s, 0, uint64))
    return philox_impl(*(bitcast(s, c, word) for c in counter), *key, n_rounds)


def _integer(x: tensor, what: str) -> tensor:
    if not x.dtype.is_int():
        raise TypeError(f"philox: {what} must be an integer, got {x.dtype}")
    return x


@builtin
def randint4x(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """Four blocks of random uint32 for the 32- or 64-bit integers `offset`: the cheapest way to many numbers."""
    s = active()
    offset = _integer(to_tensor(s, offset), "offset")
    low = cast(s, offset, uint32)
    zero = constant(s, 0, low.type)
    high = cast(s, offset >> 32, uint32) if offset.dtype.int_bitwidth > 32 else zero
    return philox(seed, low, high, zero, zero, n_rounds)


@builtin
def randint(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """A block of random uint32 for the integers `offset`."""
    return randint4x(seed, offset, n_rounds)[0]


@builtin
def uint_to_uniform_float(x):
    """Random 32- or 64-bit integers to fp32, uniform in [0, 1)."""
    wide = x.dtype.int_bitwidth == 64
    x = bitcast(active(), x, int64 if wide else int32)
    return where(x < 0, ~x, x) * (1.0842020432385337e-19 if wide else 4.6566127342e-10)


@builtin
def rand(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """A block of fp32, uniform in [0, 1), for the integers `offset`."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@builtin
def rand4x(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """Four blocks of fp32, uniform in [0, 1)."""
    return tuple(uint_to_uniform_float(x) for x in randint4x(seed, offset, n_rounds))


@builtin
def pair_uniform_to_normal(u1, u2):
    """Two normal from two uniform blocks (Box-Muller)."""
    radius = sqrt(log(maximum(1.0e-7, u1)) * -2.0)
    angle = u2 * 6.283185307179586
    return radius * cos(angle), radius * sin(angle)


@builtin
def randn(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """A block of fp32 of the standard normal distribution, for the integers `offset`."""
    i1, i2, _, _ = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(i1), uint_to_uniform_float(i2))[0]


@builtin
def randn4x(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """Four blocks of fp32 of the standard normal distribution."""
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    return *pair_uniform_to_normal(u1, u2), *pair_uniform_to_normal(u3, u4)
