"""Reductions and scans: the standard ones for every dtype and axis, any combine function, tuples of operands."""

import numpy as np
import pytest
from language_harness import empty, jit, launch, numbers, of, sample

import tilewright.language as tl


@jit
def reduce_kernel(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    if OP == "sum":
        r = tl.sum(v, axis=AXIS)
    elif OP == "max":
        r = tl.max(v, axis=AXIS)
    elif OP == "min":
        r = tl.min(v, axis=AXIS)
    elif OP == "argmax":
        r = tl.argmax(v, axis=AXIS)
    elif OP == "argmin":
        r = tl.argmin(v, axis=AXIS)
    else:
        r = tl.xor_sum(v, axis=AXIS)
    if AXIS == 0:
        tl.store(out + j, r)
    elif AXIS == 1:
        tl.store(out + i, r)
    else:
        tl.store(out, r)


SHAPES = [(1, 8), (16, 4), (8, 64), (128, 2)]


@pytest.mark.parametrize("op", ["sum", "max", "min", "xor"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [tl.int8, tl.int32, tl.uint16, tl.int64], ids=str)
def test_integer_reductions(dtype, shape, op):
    x = sample(dtype, shape[0] * shape[1], 1).reshape(shape)
    for axis in (0, 1, None):
        wide = np.int64 if dtype is tl.int64 else np.uint32 if dtype.is_int_unsigned() else np.int32
        out = np.zeros(x.size if axis is None else x.shape[1 - axis], wide)
        launch(reduce_kernel, (1,), x, out, *shape, axis, op)
        function = {"sum": np.add, "max": np.maximum, "min": np.minimum, "xor": np.bitwise_xor}[op]
        want = function.reduce(x.astype(wide), axis=axis, dtype=wide)
        assert np.array_equal(out[0] if axis is None else out, want)


@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float32, tl.float64], ids=str)
def test_float_reductions(dtype, op):
    shape = (16, 64)
    x = of(np.random.default_rng(2).integers(-8, 8, shape), dtype)  # small integers: sums are exact in every format
    for axis in (0, 1, None):
        out = empty(shape[0] * shape[1] if axis is None else shape[1 - axis], dtype)
        launch(reduce_kernel, (1,), x, out, *shape, axis, op)
        want = getattr(np, op)(numbers(x).astype(np.float64), axis=axis)
        got = numbers(out)
        if op == "sum":
            np.testing.assert_allclose(got[0] if axis is None else got, want, atol=0 if dtype is not tl.bfloat16 else 2)
        else:
            assert np.array_equal(got[0] if axis is None else got, want)


def test_max_and_min_ignore_nan():
    x = np.float32([[np.nan, 1, 5, 2], [np.nan] * 4, [-np.inf, np.nan, 3, np.inf], [0, 0, 0, np.nan]])
    for op, want in (("max", [5, np.nan, np.inf, 0]), ("min", [1, np.nan, -np.inf, 0])):
        out = np.zeros(4, np.float32)
        launch(reduce_kernel, (1,), x, out, 4, 4, 1, op)
        assert np.array_equal(out, np.float32(want), equal_nan=True)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [tl.int32, tl.float32, tl.float16], ids=str)
def test_argmax_takes_the_leftmost(dtype, op):
    x = of(np.random.default_rng(3).integers(0, 4, (8, 32)), dtype)
    for axis in (0, 1):
        out = np.zeros(x.shape[1 - axis], np.int32)
        launch(reduce_kernel, (1,), x, out, 8, 32, axis, op)
        assert np.array_equal(out, getattr(np, op)(x, axis=axis))


@jit
def indices_kernel(x, values, where, N: tl.constexpr, LEFT: tl.constexpr):
    v, i = tl.max(tl.load(x + tl.arange(0, N)), axis=0, return_indices=True, return_indices_tie_break_left=LEFT)
    tl.store(values, v)
    tl.store(where, i)


def test_max_with_indices():
    x = np.random.default_rng(4).permutation(128).astype(np.float32)
    value, where = np.zeros(1, np.float32), np.zeros(1, np.int32)
    for left in (True, False):
        launch(indices_kernel, (1,), x, value, where, 128, left)
        assert (value[0], where[0]) == (127, np.argmax(x))


@jit
def keep_dims_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    r = v - tl.max(v, axis=1, keep_dims=True) + tl.sum(v, keep_dims=True)
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], r)


def test_keep_dims():
    x = np.random.default_rng(5).integers(-9, 9, (8, 16)).astype(np.float32)
    out = np.zeros_like(x)
    launch(keep_dims_kernel, (1,), x, out, 8, 16)
    assert np.array_equal(out, x - x.max(1, keepdims=True) + x.sum())


@jit
def three_axes_kernel(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, AXIS: tl.constexpr):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    v = tl.load(x + (a * B + b) * C + c)
    r = tl.sum(v, axis=AXIS)
    tl.store(out + tl.arange(0, A * B * C // x_dim(A, B, C, AXIS)), tl.ravel(r))


@tl.core.builtin
def x_dim(a, b, c, axis, _semantic=None):
    return (a, b, c)[axis]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rank_three(axis):
    x = np.random.default_rng(6).integers(-9, 9, (4, 8, 16)).astype(np.int32)
    out = np.zeros(x.size // x.shape[axis], np.int32)
    launch(three_axes_kernel, (1,), x, out, 4, 8, 16, axis)
    assert np.array_equal(out, x.sum(axis).ravel())


@jit
def affine(ga, xa, gb, xb):
    return ga * gb, xa * gb + xb


@jit
def affine_kernel(g, v, out_g, out_v, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(g + i)
    b = tl.load(v + i)
    sg, sv = tl.associative_scan((a, b), 0, affine, reverse=REVERSE)
    tl.store(out_g + i, sg)
    tl.store(out_v + i, sv)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 8, 64, 256])
def test_scan_with_a_function_that_does_not_commute(n, reverse):
    rng = np.random.default_rng(7)
    g, v = rng.choice([-1, 1, 2], n).astype(np.int64), rng.integers(-5, 5, n)
    out_g, out_v = np.zeros(n, np.int64), np.zeros(n, np.int64)
    launch(affine_kernel, (1,), g, v, out_g, out_v, n, reverse)
    order = range(n - 1, -1, -1) if reverse else range(n)
    wrap = lambda x: (x + 2**63) % 2**64 - 2**63  # noqa: E731
    product, total, want_g, want_v = 1, 0, {}, {}
    for i in order:
        product, total = wrap(product * int(g[i])), wrap(total * int(g[i]) + int(v[i]))
        want_g[i], want_v[i] = product, total
    assert out_g.tolist() == [want_g[i] for i in range(n)]
    assert out_v.tolist() == [want_v[i] for i in range(n)]


@jit
def ordered_kernel(g, v, out_g, out_v, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    p = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    rg, rv = tl.reduce((tl.load(g + p), tl.load(v + p)), AXIS, affine)
    if AXIS is None:
        tl.store(out_g, rg)
        tl.store(out_v, rv)
    else:
        tl.store(out_g + tl.arange(0, M * N // ([M, N][AXIS])), rg)
        tl.store(out_v + tl.arange(0, M * N // ([M, N][AXIS])), rv)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("shape", [(1, 2), (4, 8), (64, 2), (2, 256), (32, 64)], ids=str)
@pytest.mark.parametrize("dtype", [np.int16, np.int64])
def test_a_function_that_does_not_commute(dtype, shape, axis):
    rng = np.random.default_rng(13)
    g, v = rng.choice([-1, 1, 2], shape).astype(dtype), rng.integers(-5, 5, shape).astype(dtype)
    size = 1 if axis is None else shape[1 - axis]
    out_g, out_v = np.zeros(size, dtype), np.zeros(size, dtype)
    launch(ordered_kernel, (1,), g, v, out_g, out_v, *shape, axis)
    g, v = (x.reshape(-1, 1) if axis is None else np.moveaxis(x, axis, 0) for x in (g, v))
    with np.errstate(over="ignore"):
        product, total = np.ones(size, dtype), np.zeros(size, dtype)
        for gi, vi in zip(g, v, strict=True):
            product, total = product * gi, total * gi + vi
    assert np.array_equal(out_g, product) and np.array_equal(out_v, total)


@jit
def sum_and_largest(sa, ma, sb, mb):
    return sa + sb, tl.maximum(ma, mb)


@jit
def pair_kernel(x, sums, largest, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    s, m = tl.reduce((v.to(tl.int64), v), 1, sum_and_largest)
    tl.store(sums + tl.arange(0, M), s)
    tl.store(largest + tl.arange(0, M), m)


def test_a_tuple_of_operands():
    x = sample(tl.int32, 512, 12).reshape(8, 64)
    sums, largest = np.zeros(8, np.int64), np.zeros(8, np.int32)
    launch(pair_kernel, (1,), x, sums, largest, 8, 64)
    assert np.array_equal(sums, x.sum(1, dtype=np.int64)) and np.array_equal(largest, x.max(1))


@jit
def larger_magnitude(a, b):
    if tl.abs(a) > tl.abs(b):
        r = a
    else:
        r = b
    return r


@jit
def branching_kernel(x, out, scanned, M: tl.constexpr, N: tl.constexpr):
    p = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + p)
    tl.store(out + tl.arange(0, M), tl.reduce(v, 1, larger_magnitude))
    tl.store(scanned + p, tl.associative_scan(v, 1, larger_magnitude))


def test_a_function_with_a_branch():
    x = np.random.default_rng(8).permutation(np.arange(-63, 65)).astype(np.float32).reshape(4, 32) + 0.25
    out, scanned = np.zeros(4, np.float32), np.zeros_like(x)
    launch(branching_kernel, (1,), x, out, scanned, 4, 32)
    assert np.array_equal(out, [row[np.argmax(np.abs(row))] for row in x])
    assert np.array_equal(scanned, [[row[np.argmax(np.abs(row[: i + 1]))] for i in range(32)] for row in x])


@jit
def scan_kernel(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr, OP: tl.constexpr):
    p = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + p)
    if OP == "sum":
        r = tl.cumsum(v, axis=AXIS, reverse=REVERSE)
    else:
        r = tl.cumprod(v, axis=AXIS, reverse=REVERSE)
    tl.store(out + p, r)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("dtype", "op"), [(tl.int32, "sum"), (tl.float32, "sum"), (tl.int64, "prod"), (tl.float64, "prod")], ids=str)
def test_cumulative(dtype, op, axis, reverse):
    x = of(np.random.default_rng(9).choice([-1, 1, 2] if op == "prod" else range(-9, 9), (16, 32)), dtype)
    out = np.zeros_like(x)
    launch(scan_kernel, (1,), x, out, 16, 32, axis, reverse, op)
    flipped = np.flip(x, axis) if reverse else x
    want = (np.cumsum if op == "sum" else np.cumprod)(flipped, axis=axis)
    assert np.array_equal(out, np.flip(want, axis) if reverse else want)


@jit
def flags_kernel(x, running, total, N: tl.constexpr):
    i = tl.arange(0, N)
    flag = tl.load(x + i) > 0
    tl.store(running + i, tl.cumsum(flag, axis=0))
    tl.store(total, tl.sum(flag, axis=0))


def test_booleans_are_counted():
    x = np.random.default_rng(10).standard_normal(512).astype(np.float32)
    running, total = np.zeros(512, np.int32), np.zeros(1, np.int32)
    launch(flags_kernel, (1,), x, running, total, 512)
    assert np.array_equal(running, np.cumsum(x > 0)) and total[0] == (x > 0).sum()


@jit
def softmax_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    p = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + p, tl.softmax(tl.load(x + p), dim=1))


def test_softmax():
    x = np.random.default_rng(11).standard_normal((8, 64)).astype(np.float32)
    out = np.zeros_like(x)
    launch(softmax_kernel, (1,), x, out, 8, 64)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
